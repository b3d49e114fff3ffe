"""Forms of kfp 1.8 that need the whole file to be understood."""

import json
from collections.abc import Mapping
from dataclasses import replace

from localvertex._base.compiled.parameters import ParameterType
from localvertex._base.compiled.spec import Component
from localvertex._base.userinput.spelling import quote


def complete(components: Mapping[str, Component], problems: list[str]) -> None:
    """Fill in what kfp 1.8 left out.

    An output without its key is the producer's only one. A number for a STRING, as 1 for a `bool`, is its text.

    Args:
        components: All components by name, the root among them.
        problems: Receives the sources for which the output is not clear.
    """
    nothing = Component(name="")
    for component in components.values():
        tasks = component.dag.tasks if component.dag else {}
        for task in tasks.values():
            declared = components.get(task.component, nothing).input_parameters
            for name, source in task.parameters.items():
                if source.producer is not None and not source.output:
                    producer = tasks.get(source.producer)
                    found = components.get(producer.component, nothing) if producer else nothing
                    outputs = [*found.output_parameters]
                    task.parameters[name] = replace(source, output=outputs[0] if outputs else "")
                    if len(outputs) != 1:
                        problems.append(
                            f"{source.path}.taskOutputParameter: the field 'outputParameterKey' is missing or empty, "
                            f"and {quote(source.producer, 120)} has {len(outputs)} outputs"
                        )
                elif source.is_old and isinstance(source.constant, int | float) and name in declared:
                    if declared[name].type is ParameterType.STRING:
                        task.parameters[name] = replace(source, constant=json.dumps(source.constant))
