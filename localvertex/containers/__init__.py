"""How the commands of foreign container images run here: in their image, in a sandbox, or not at all."""
