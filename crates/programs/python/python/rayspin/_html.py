"""Pictures for notebooks."""

import base64
import html as escaping
import pathlib
import tempfile
from typing import Any


def html(found: Any) -> str:
    """The picture of a result as a page's part, with its name and notes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "image.png"
        found.save(path)
        picture = base64.b64encode(path.read_bytes()).decode()
    notes = "".join(f"<li>{escaping.escape(note)}</li>" for note in found.notes)
    style = "image-rendering: pixelated; min-width: 256px; max-width: 100%"
    return (
        f'<p>{escaping.escape(repr(found))}</p><img style="{style}" src="data:image/png;base64,{picture}">'
        f"<details><summary>{len(found.notes)} notes</summary><ul>{notes}</ul></details>"
    )
