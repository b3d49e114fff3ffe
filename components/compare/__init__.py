"""The step `compare`: whether the new model replaces the champion, and by which criteria."""
