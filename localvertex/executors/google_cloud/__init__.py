"""Operations of google-cloud-pipeline-components over the local registry and local processes, one class for each."""
