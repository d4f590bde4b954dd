"""Asks a model server many things at once, as a user of each program would write it.

    peers.py PROGRAM TASK    TASK is JSON: url, conversations, turns, width, prompt, rollouts

Prints JSON: version, seconds and CPU seconds from the first call to the last, calls that failed, and the first error.
"""

import asyncio
import importlib.metadata
import json
import os
import resource
import sys
import tempfile
import time

RETRIES = 10  # of a refused call; the defaults are 2 or none, and calls would fail
KEY = "bench"


class Tally:
    def __init__(self):
        self.failed = 0
        self.error = ""

    def fail(self, error):
        self.failed += 1
        self.error = self.error or f"{type(error).__name__}: {error}"[:300]


async def conversations(task, tally, ask):
    """Holds all conversations, so many at once. ask takes the messages and returns the answer."""
    room = asyncio.Semaphore(task["width"])

    async def hold():
        async with room:
            messages = [{"role": "user", "content": task["prompt"]}]
            try:
                for _ in range(task["turns"]):
                    answer = await ask(messages)
                    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": task["prompt"]}]
            except Exception as error:
                tally.fail(error)

    await asyncio.gather(*(hold() for _ in range(task["conversations"])))


def openai(task, tally):
    import httpx2
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    async def main():
        limits = httpx2.Limits(max_connections=task["width"], max_keepalive_connections=task["width"])
        http = DefaultAsyncHttpxClient(limits=limits, timeout=600)
        async with AsyncOpenAI(base_url=task["url"], api_key=KEY, max_retries=RETRIES, http_client=http) as client:

            async def ask(messages):
                got = await client.chat.completions.create(model="any", messages=messages, max_completion_tokens=64)
                return got.choices[0].message.content

            await conversations(task, tally, ask)

    return lambda: asyncio.run(main())


def litellm(task, tally):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it fetches prices from the network
    import litellm as lite

    lite.suppress_debug_info = True
    lite.telemetry = False

    async def ask(messages):
        got = await lite.acompletion(model="openai/any", api_base=task["url"], api_key=KEY, messages=messages, max_tokens=64, num_retries=RETRIES)
        return got.choices[0].message.content

    return lambda: asyncio.run(conversations(task, tally, ask))


def inspect_ai(task, tally):
    os.environ["OPENAI_API_KEY"] = KEY
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
    from inspect_ai.solver import solver

    @solver
    def talk():
        async def solve(state, generate):
            for turn in range(task["turns"]):
                if turn:
                    state.messages.append(ChatMessageUser(content=task["prompt"]))
                state = await generate(state)
            return state

        return solve

    samples = [Sample(input=task["prompt"], id=i + 1) for i in range(task["conversations"])]
    config = GenerateConfig(max_tokens=64, max_connections=task["width"], max_retries=RETRIES)
    model = get_model("openai/any", base_url=task["url"], config=config, responses_api=False)

    def run():
        with tempfile.TemporaryDirectory() as logs:
            for log in eval(Task(dataset=MemoryDataset(samples), solver=talk()), model=model, max_samples=task["width"],
                            max_connections=task["width"], log_dir=logs, display="none", fail_on_error=False, log_realtime=False):
                if log.status != "success":
                    tally.fail(RuntimeError(log.error.message if log.error else log.status))
                tally.failed += sum(1 for s in log.samples or [] if s.error)

    return run


def aiohttp(task, tally):
    import aiohttp as http

    async def main():
        connector = http.TCPConnector(limit=task["width"])
        timeout = http.ClientTimeout(total=600)
        async with http.ClientSession(connector=connector, timeout=timeout, headers={"Authorization": "Bearer " + KEY}) as session:

            async def ask(messages):
                body = {"model": "any", "messages": messages, "max_completion_tokens": 64}
                for _ in range(RETRIES + 1):
                    async with session.post(task["url"] + "/chat/completions", json=body) as got:
                        if got.status == 429:
                            await asyncio.sleep(float(got.headers.get("retry-after", 1)))
                            continue
                        got.raise_for_status()
                        return (await got.json())["choices"][0]["message"]["content"]
                raise RuntimeError("refused too often")

            await conversations(task, tally, ask)

    return lambda: asyncio.run(main())


def rollouts(task, tally):
    """Plays episodes of an environment server as aiohttp tasks: the loop that people write, which keeps nothing."""
    import aiohttp as http

    async def main():
        async with http.ClientSession(connector=http.TCPConnector(limit=0), timeout=http.ClientTimeout(total=600)) as session:

            async def do(method, path, body=None):
                async with session.request(method, task["url"] + path, json=body) as got:
                    got.raise_for_status()
                    return await got.json()

            async def episode(number):
                at = f"/arithmetic/aiohttp-{number}"
                await do("POST", at + "/reset", {"env_param": {"problems": task["turns"]}, "seed": number})
                over = False
                while not over:
                    prompt = await do("GET", at + "/get_task_prompt")
                    answer = await do("POST", "/v1/chat/completions", {"model": "any", "messages": prompt})
                    step = await do("POST", at + "/step", {"action": answer["choices"][0]["message"]["content"]})
                    over = step["terminated"] or step["truncated"]
                await do("DELETE", at)

            numbers = iter(range(task["conversations"]))

            async def play():
                for number in numbers:
                    try:
                        await episode(number)
                    except Exception as error:
                        tally.fail(error)

            await asyncio.gather(*(play() for _ in range(task["width"])))

    return lambda: asyncio.run(main())


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    name, task, tally = sys.argv[1], json.loads(sys.argv[2]), Tally()
    programs = {"openai": openai, "litellm": litellm, "inspect_ai": inspect_ai, "aiohttp": aiohttp}
    run = (rollouts if task.get("rollouts") else programs[name])(task, tally)
    began, used = time.monotonic(), cpu()
    run()
    json.dump({"version": importlib.metadata.version(name), "seconds": time.monotonic() - began, "cpu": cpu() - used,
               "failed": tally.failed, "error": tally.error}, sys.stdout)


main()
