"""The networks that can be trained, by name, and in custom/ the user's own; how they are trained is not here."""
