"""Daytona's API as the official clients know it: their generated code is asked for paths, parameters, bodies and answers.

Nothing of the contract is written down here, so it cannot drift from what the SDK of PyPI really does.
"""

import datetime
import enum
import inspect
import json
import re
import typing

import daytona_api_client as control
import daytona_toolbox_api_client as toolbox
from pydantic import BaseModel, ValidationError

# What the generated clients make of a word they do not know.
_UNKNOWN_WORD = "unknown_default_open_api"


class Refused(Exception):
    """A request that the official client would not have sent."""


class Operation:
    """One call of a generated client: `Operation(control, "SandboxApi", "create_sandbox")`."""

    def __init__(self, package, api, name):
        self.package, self.name = package, name
        owner = getattr(package, api)
        sent = inspect.getsource(getattr(owner, f"_{name}_serialize"))
        called = inspect.getsource(getattr(owner, name))
        self.method = re.search(r"method='(\w+)'", sent)[1]
        self.path = re.search(r"resource_path='([^']+)'", sent)[1]
        self.query = set(re.findall(r"_query_params\.append\(\s*\(\s*'(\w+)'", sent))
        answers = re.search(r"_response_types_map[^{]*\{(.*?)\}", called, re.S)[1]
        self.answers = {int(code): model for code, model in re.findall(r"'(\d+)': (?:\"([^\"]+)\"|None)", answers)}
        body = re.search(r"_body_params = (\w+)", sent)
        self.body = _model_of(owner, name, body[1]) if body else None

    @property
    def status(self):
        """The code of success."""
        return next(code for code in self.answers if code < 300)

    def check_query(self, query):
        if unknown := set(query) - self.query:
            raise Refused(f"{self.name} has no query parameter {', '.join(sorted(unknown))}")

    def read(self, text):
        """The body as the official model, which must be able to send exactly this."""
        if self.body is None:
            if text and text not in (b"{}", b"null"):
                raise Refused(f"{self.name} has no body")
            return None
        try:
            sent = json.loads(text or "{}")
            model = self.body.from_dict(sent)
        except (ValueError, ValidationError) as error:
            raise Refused(f"{self.body.__name__}: {error}") from error
        if _plain(model) != {**_defaults(model), **_without_nulls(sent)}:
            raise Refused(f"{self.body.__name__} has no such fields: {json.dumps(sent)[:500]}")
        return model

    def write(self, value, status=None):
        """An answer in JSON, built by the official model of the answer."""
        type_name = self.answers[status or self.status]
        if not type_name:
            return None
        if inner := re.fullmatch(r"List\[(\w+)\]", type_name):
            return [self._convert_item(inner[1], item) for item in value]
        return self._convert_item(type_name, value)

    def _convert_item(self, type_name, value):
        model = getattr(self.package, type_name, None)
        if model is None:
            return value
        built = model.from_dict(value)
        plain = _plain(built)
        lost = set(_without_nulls(value)) - set(plain) if isinstance(value, dict) else set()
        if lost or getattr(built, "additional_properties", None):
            raise AssertionError(f"{type_name} would not be read whole: {lost or built.additional_properties}")
        return json.loads(built.to_json())


def _model_of(owner, name, parameter):
    """The class of a body: the annotation without `Annotated` and `Optional`."""
    hint = typing.get_type_hints(getattr(owner, name))[parameter]
    inner = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    return inner[0] if inner else hint


def _defaults(model):
    """Defaults of the model for absent fields."""
    fields = type(model).model_fields
    return {
        field.serialization_alias or name: field.default
        for name, field in fields.items()
        if name != "additional_properties" and not field.is_required() and isinstance(field.default, bool | int | str)
    }


def _plain(value):
    """A model as plain data, with what it did not know left out."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        pairs = (
            (field.serialization_alias or field.alias or name, getattr(value, name))
            for name, field in fields.items()
            if name != "additional_properties"
        )
        return {name: _plain(inner) for name, inner in pairs if inner is not None}
    if isinstance(value, enum.Enum):
        return value.value if value.value != _UNKNOWN_WORD else object()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def _without_nulls(value):
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def operations(package, api, *names):
    return {name: Operation(package, api, name) for name in names}


CONTROL = {
    **operations(
        control,
        "SandboxApi",
        *"create_sandbox list_sandboxes get_sandbox delete_sandbox start_sandbox stop_sandbox pause_sandbox".split(),
        *"archive_sandbox recover_sandbox resize_sandbox replace_labels update_public_status set_autostop_interval".split(),
        *"set_auto_pause_interval set_auto_archive_interval set_auto_delete_interval set_ttl update_last_activity".split(),
        *"update_network_settings create_sandbox_snapshot fork_sandbox get_port_preview_url".split(),
        *"get_signed_port_preview_url expire_signed_port_preview_url get_toolbox_proxy_url".split(),
        *"get_sandbox_signing_key rotate_signing_key get_sandbox_metrics".split(),
    ),
    **operations(
        control,
        "SnapshotsApi",
        *"get_all_snapshots get_snapshot create_snapshot remove_snapshot activate_snapshot deactivate_snapshot".split(),
    ),
    **operations(control, "ConfigApi", "config_controller_get_config"),
}

TOOLBOX = {
    **operations(
        toolbox,
        "FileSystemApi",
        *"create_folder delete_file download_file download_files find_in_files get_file_info list_files move_file".split(),
        *"replace_in_files search_files set_file_permissions upload_file upload_files".split(),
    ),
    **operations(
        toolbox,
        "ProcessApi",
        *"execute_command code_run create_session delete_session get_session list_sessions get_session_command".split(),
        *"get_session_command_logs send_input session_execute_command".split(),
    ),
    **operations(toolbox, "InfoApi", *"get_user_home_dir get_work_dir get_version".split()),
    **operations(toolbox, "PortApi", *"get_ports is_port_in_use".split()),
    **operations(toolbox, "SystemApi", "get_system_metrics"),
    **operations(toolbox, "ServerApi", "update_env"),
}
