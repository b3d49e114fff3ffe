"""Values inside a task: placeholders, arguments and conditions; types are in `vertex_gpu_training.userinput`."""
