"""Everything about machine learning: data, models, training, evaluation, export; nothing here knows kfp."""
