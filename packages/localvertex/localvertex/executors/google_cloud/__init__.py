"""Operations of google-cloud-pipeline-components with the local registry and local processes, a class per operation."""
