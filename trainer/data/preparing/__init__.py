"""Makes a prepared dataset: examines images, keeps rows on disk, and writes shards, metadata and the image list."""
