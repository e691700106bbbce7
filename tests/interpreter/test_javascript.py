"""JavaScript and TypeScript."""

import pytest


@pytest.fixture
def js(sandbox):
    context = sandbox.create_code_context(language="js")
    assert context.language == "javascript"
    yield lambda code, **options: sandbox.run_code(code, context=context, **options)
    sandbox.remove_code_context(context)


def test_output_result_and_state(js):
    execution = js("console.log('Hello'); console.error('oops'); const x = { a: [1, 2] }; x")
    assert (execution.logs.stdout, execution.logs.stderr) == (["Hello\n"], ["oops\n"])
    assert execution.text == "{ a: [ 1, 2 ] }"
    assert js("x.a.length").text == "2"


def test_a_name_can_be_declared_again(js):
    js("const x = 1; let y = 1; class Z {}")
    assert js("const x = 2; let y = 2; class Z {}; x + y").text == "4"


@pytest.mark.parametrize(
    "code, text", [("'text'", "text"), ("1n", "1n"), ("-0", "-0"), ("null", "null"), ("undefined", None), ("let q = 1", None)]
)
def test_results(js, code, text):
    assert js(code).text == text


def test_await_at_the_top(js):
    assert js("const f = async () => 'later'; await f()").text == "later"


def test_imports(js, server):
    (server.home / "own.mjs").write_text("export default 'mine'; export const named = 1;")
    code = "import own, { named as other } from './own.mjs'\nimport * as path from 'node:path'\nimport 'fs'\n"
    code += "[own, other, path.sep]"
    assert js(code).text == "[ 'mine', 1, '/' ]"
    assert js("typeof (await import('node:fs')).readFileSync").text == "function"
    assert js("typeof require('fs').readFileSync").text == "function"


def test_what_only_looks_like_an_import(js):
    code = "const text = `import('a') ${'import x from \"y\"'}\nimport b from 'c'`; // import('d')\ntext"
    assert js(code).text == "import('a') import x from \"y\"\nimport b from 'c'"


@pytest.mark.parametrize(
    "code, name, value",
    [
        ("throw new RangeError('bad')", "RangeError", "bad"),
        ("1 +", "SyntaxError", "Unexpected end of input"),
        ("nothing", "ReferenceError", "nothing is not defined"),
        ("throw 'a text'", "Error", "a text"),
        ("await Promise.reject(new TypeError('late'))", "TypeError", "late"),
        ("import 'no-such-package'", "Error", "Cannot find package"),
    ],
)
def test_errors(js, code, name, value):
    error = js(code).error
    assert error.name == name
    assert value in error.value
    assert "main.mjs" not in error.traceback


def test_an_error_in_a_timer_is_printed_and_survived(js):
    execution = js("setTimeout(() => { throw new Error('late') }, 1); await new Promise((r) => setTimeout(r, 50)); 1")
    assert execution.text == "1"
    assert "Error: late" in "".join(execution.logs.stderr)


def test_much_output_arrives_whole(js):
    printed = "".join(js("for (let i = 0; i < 20000; i++) console.log('x'.repeat(99))").logs.stdout)
    assert len(printed) == 2_000_000


def test_the_working_directory(sandbox, js, server):
    assert js("process.cwd()").text == str(server.home)
    context = sandbox.create_code_context("/", language="javascript")
    assert sandbox.run_code("process.cwd()", context=context).text == "/"


def test_typescript(sandbox):
    code = "interface P { x: number }\nenum Kind { One = 1 }\nconst p: P = { x: Kind.One };\n"
    code += "function f(p: P): number { return p.x - 2 }\nf(p)"
    assert sandbox.run_code(code, language="ts").text == "-1"
    assert sandbox.run_code("p.x", language="typescript").text == "1"
    assert sandbox.run_code("const x: = 1", language="ts").error is not None
