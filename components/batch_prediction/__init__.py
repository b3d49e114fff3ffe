"""The steps of the batch prediction: the champion, the instances, and the report on the answers."""
