"""Many at once."""

from concurrent.futures import ThreadPoolExecutor


def test_fifty_executions_in_several_contexts(sandbox):
    languages = ["python", "python", "python", "bash", "javascript"]
    contexts = [sandbox.create_code_context(language=language) for language in languages]
    code = {"python": "print({n})", "bash": "echo {n}", "javascript": "console.log({n})"}

    def run(number):
        context = contexts[number % len(contexts)]
        execution = sandbox.run_code(code[context.language].format(n=number), context=context, timeout=250)
        return "".join(execution.logs.stdout), execution.error, execution.execution_count

    with ThreadPoolExecutor(50) as pool:
        outcome = list(pool.map(run, range(50)))
    assert [text for text, _, _ in outcome] == [f"{number}\n" for number in range(50)]
    assert all(error is None for _, error, _ in outcome)
    # One after the other in each context.
    for location in range(len(contexts)):
        assert sorted(count for _, _, count in outcome[location :: len(contexts)]) == list(range(1, 11))
    for context in contexts:
        sandbox.remove_code_context(context)


def test_executions_of_a_context_do_not_mix(sandbox, context):
    code = "import time\nfor _ in range(5):\n    print({n})\n    time.sleep(0.01)"
    with ThreadPoolExecutor(10) as pool:
        outcome = list(pool.map(lambda n: sandbox.run_code(code.format(n=n), context=context), range(10)))
    assert ["".join(each.logs.stdout) for each in outcome] == [f"{n}\n" * 5 for n in range(10)]


def test_many_contexts(sandbox):
    with ThreadPoolExecutor(10) as pool:
        contexts = list(pool.map(lambda _: sandbox.create_code_context(), range(30)))
        texts = list(pool.map(lambda context: sandbox.run_code("1 + 1", context=context, timeout=250).text, contexts))
        list(pool.map(sandbox.remove_code_context, contexts))
    assert texts == ["2"] * 30
