"""Every browser tool by the official client, in a sandbox whose Chromium shows a page served in it."""

import base64

import pytest

from client import images, listens, text
from waiting import wait_for

PAGE = """<!doctype html><title>Form</title><body style="margin:0;height:3000px;background:rgb(12,120,200)">
<button id="go" style="position:absolute;left:20px;top:20px;width:200px;height:60px"
  onclick="document.title='clicked'">Go</button>
<input id="a" style="position:absolute;left:20px;top:120px;width:300px;height:40px"
  onkeydown="if(event.key=='Enter')document.title='entered '+this.value">
<input id="b" style="position:absolute;left:20px;top:200px;width:300px;height:40px"
  oninput="document.title='both '+document.getElementById('a').value+' '+this.value">
<select id="s" style="position:absolute;left:20px;top:280px;width:300px;height:40px"
  onchange="document.title='chose '+this.value"><option>red</option><option>green</option></select>
<div id="d" style="position:absolute;left:20px;top:400px;width:300px;height:100px;background:white"
  onmousedown="window.held=1" onmouseup="if(window.held)document.title='dragged'"></div>"""


@pytest.fixture(scope="module")
def site(endpoint, api, sandbox):
    endpoint.call("Write", file_path="/workspace/form/index.html", content=PAGE)
    command = "cd /workspace/form && python3 -m http.server 8222 --bind 127.0.0.1 &"
    endpoint.call("Bash", session_name="form", command=command)
    wait_for(lambda: listens(api, sandbox, 8222), "the site listens")
    return "http://127.0.0.1:8222/"


def test_every_browser_tool(endpoint, site):
    def use(tool, **arguments):
        result = endpoint.call(tool, **arguments)
        (picture,) = images(result)
        assert base64.b64decode(picture.data).startswith(b"\x89PNG"), tool
        return text(result)

    assert "Form" in use("browser_navigation", url=site)
    assert "clicked" in use("browser_click", coordinate_x=60, coordinate_y=50)
    assert "Form" in use("browser_navigate", url=site)
    assert "clicked" in use("browser_click", selector="#go")
    entered = use("browser_enter_text", text="Ada", coordinate_x=60, coordinate_y=140, press_enter=True)
    assert "entered Ada" in entered
    locations = [(140, "Grace"), (220, "Hopper")]
    fields = [{"text": parts, "coordinate_x": 60, "coordinate_y": y, "override": True} for y, parts in locations]
    assert "both Grace Hopper" in use("browser_enter_multi_texts", enter_texts=fields)
    use("browser_press_key", key="Tab")
    elements = use("browser_view_interactive_elements")
    index = next(int(digits(line)) for line in elements.splitlines() if "select" in line.lower())
    assert "green" in use("browser_get_select_options", index=index)
    assert "chose green" in use("browser_select_dropdown_option", index=index, option="green")
    dragged = {"coordinate_x_start": 60, "coordinate_y_start": 430, "coordinate_x_end": 200, "coordinate_y_end": 470}
    assert "dragged" in use("browser_drag", **dragged)
    use("browser_scroll_down")
    use("browser_scroll_up")
    use("browser_wait")
    use("browser_open_new_tab")
    assert "dragged" in use("browser_switch_tab", index=0)
    assert "Form" in use("browser_restart", url=site)


def digits(line):
    """The first number of a line."""
    start = next(at for at, letter in enumerate(line) if letter.isdigit())
    end = start
    while end < len(line) and line[end].isdigit():
        end += 1
    return line[start:end]
