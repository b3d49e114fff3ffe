"""Makes a prepared dataset: examines each image, keeps rows on disk, and writes shards, metadata and the image list."""
