"""nanoidp with four clients and PKCE for all of them. Argument: the port."""

import json
import pathlib
import subprocess
import sys
import tempfile

port = sys.argv[1]
here = pathlib.Path(__file__).parent
folder = pathlib.Path(tempfile.mkdtemp())
clients = [
    {**json.loads(file.read_text()), "description": file.stem}
    for file in sorted(here.glob("client-*.json"))
]
settings = {
    "config_version": 1,
    "server": {"host": "127.0.0.1", "port": int(port)},
    "oauth": {
        "issuer": f"http://localhost:{port}",
        "audience": "api",
        "require_pkce": True,
        "clients": clients,
    },
}
user = {"password": "alice-in-dev", "email": "alice@example.org", "roles": ["USER"]}
(folder / "settings.yaml").write_text(json.dumps(settings))
(folder / "users.yaml").write_text(json.dumps({"config_version": 1, "users": {"alice": user}}))
program = pathlib.Path(sys.executable).parent / "nanoidp"
# It writes its keys where it runs.
sys.exit(subprocess.call([str(program), "--config", str(folder), "--port", port], cwd=folder))
