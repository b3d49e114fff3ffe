"""Operations of google-cloud-pipeline-components that use the local registry and local processes; a class each."""
