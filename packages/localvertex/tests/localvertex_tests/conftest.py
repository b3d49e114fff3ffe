"""Which tests of this package need a sandbox."""

import pytest

from localvertex.containers.choice import Choice

_SANDBOXED = (
    "runner/checks/test_before_start.py::test_a_value_with_nul_is_refused",
    "runner/checks/test_before_start.py::test_all_reasons_are_given_at_once",
    "runner/checks/test_before_start.py::test_the_unchanged_file_runs",
    "constructs/older/test_older_files.py::test_container_commands",
    "constructs/older/test_older_files.py::test_container_commands_of_kfp_1_8",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[concatenation]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[escaped_placeholders]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[executor_input_of_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[executor_output_of_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[files_of_commands]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[metadata_in_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[present_inputs]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[values_in_a_command]",
    "constructs/test_constructs.py::test_a_construct_gives_its_values[variables_of_a_command]",
    "constructs/test_constructs.py::test_a_construct_is_refused_before_anything_runs[containerized_component]",
    "constructs/test_constructs.py::test_a_construct_is_refused_before_anything_runs[image_without_a_command]",
    "constructs/test_operations.py::test_the_page_is_what_localvertex_decides",
    "credentials/test_gcs_root.py::test_a_bucket_without_a_folder_is_named",
    "credentials/test_gcs_root.py::test_a_resumed_run_uses_the_buckets_that_it_was_started_with",
    "credentials/test_gcs_root.py::test_no_address_leads_out_of_its_bucket",
    "credentials/test_gcs_root.py::test_the_server_maps_buckets_for_pipelines",
    "credentials/test_gcs_root.py::test_without_the_option_importers_and_commands_are_refused_too",
    "executors/test_container_command.py::test_all_containers_without_a_local_program_are_refused_at_once",
    "processes/test_masker.py::test_a_kill_of_localvertex_leaves_a_whole_log_without_the_secret",
    "test_damaged_files.py::test_damaged_files_that_are_accepted_run_to_an_end",
    "test_hostile.py::test_a_hostile_file_is_refused_on_the_command_line[a null byte in a program]",
    "test_hostile.py::test_a_hostile_file_is_refused_on_the_command_line[a program in its image]",
    "test_malformed.py::test_an_invalid_spec_is_refused_with_the_path_of_the_field[foreign container]",
    "test_malformed.py::test_an_invalid_spec_is_refused_with_the_path_of_the_field[no command]",
    "test_malformed.py::test_everything_that_is_refused_is_named_at_once_on_the_command_line",
)
"""Tests of the command line or of checks that meet container commands, so they need a sandbox."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a sandbox where bubblewrap is missing or does not work."""
    names = tuple(f"localvertex_tests/{each}" for each in _SANDBOXED)
    found = [each for each in items if each.nodeid[each.nodeid.find("localvertex_tests/") :].startswith(names)]
    if found and (problem := Choice().how.problem):
        for each in found:
            each.add_marker(pytest.mark.skip(reason=problem))
