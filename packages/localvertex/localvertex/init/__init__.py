"""`localvertex init`: pipelines of a repository, how they would run here, and a first test. Nothing of it is run."""
