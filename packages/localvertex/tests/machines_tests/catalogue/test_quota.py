"""The names of quotas, and how much of them a job counts against."""

from localvertex.machines import load_catalogue
from localvertex.machines.catalogue.quota import MachineRequest, gpu_quota_name, quota_metrics


def test_quota_names_follow_the_services_messages() -> None:
    names = {
        "NVIDIA_TESLA_T4": "nvidia_t4",
        "NVIDIA_TESLA_A100": "nvidia_a100",
        "NVIDIA_A100_80GB": "nvidia_a100_80gb",
        "NVIDIA_H100_80GB": "nvidia_h100",
        "NVIDIA_H100_MEGA_80GB": "nvidia_h100_mega",
        "NVIDIA_L4": "nvidia_l4",
    }
    assert {name: gpu_quota_name(name) for name in names} == names
    requests = [
        MachineRequest(
            machine_type="n1-standard-8", accelerator_type="NVIDIA_TESLA_T4", accelerator_count=2, replica_count=3
        ),
        MachineRequest(machine_type="e2-standard-4"),
    ]
    prefix = "aiplatform.googleapis.com/custom_model_training_"
    catalogue = load_catalogue()
    assert quota_metrics(requests, scheduling_strategy="STANDARD", catalogue=catalogue) == {
        f"{prefix}cpus": 28,
        f"{prefix}nvidia_t4_gpus": 6,
    }
    flexible = quota_metrics(requests, scheduling_strategy="FLEX_START", catalogue=catalogue)
    assert set(flexible) == {f"{prefix}preemptible_cpus", f"{prefix}preemptible_nvidia_t4_gpus"}
