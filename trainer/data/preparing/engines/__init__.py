"""Engines, which examine images and write shards on this machine or on others."""
