"""Process groups of real torch, old and new, start and run on the store.

Conformance numbers are those of the list in docs/protocol.md. Attempts (50, 53, 55, 62) are played
with successive servers, as a launcher opens one for each; the launcher's own restarts have their
tests beside it.
"""

import subprocess

import pytest

from tests.integration.store_support import (NEW_TORCH, OLD_TORCH, Proxy, StoreServer, finish, i64, need_torch,
                           operations_of, receive, run_ranks, start_ranks)


@pytest.fixture(name="server")
def store_server():
    with StoreServer() as server:
        yield server


GLOO = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    value = torch.ones(1) * (rank + 1)
    dist.all_reduce(value)
    assert value.item() == size * (size + 1) / 2
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert [o["rank"] for o in objects] == list(range(size))
    dist.barrier()
    group = dist.new_group([0, 1])
    alone = dist.new_group([0])
    if rank < 2:
        dist.all_reduce(value, group=group)
    dist.barrier()
    dist.destroy_process_group()
    print("fine")
"""


@pytest.mark.parametrize("python,size", [(OLD_TORCH, 2), (NEW_TORCH, 2)])
def test_gloo_runs_and_a_second_attempt_on_a_fresh_store_too(python, size):
    """Conformance 50, 55 and 53: two attempts on one port, each with a store of its own; no process
    is left, for stop() has waited for the server and run_ranks for the workers."""
    port = 0
    for attempt in range(2):
        with StoreServer(f"port={port}") as server:
            port = server.port
            assert run_ranks(need_torch(python), GLOO, port, size, attempt) == ["fine\n"] * size
            assert server.stop() == (size, [])


@pytest.mark.parametrize("size", [2, 4])
def test_new_torch_sends_what_the_protocol_says(size):
    """Conformance 55: operations per rank at the start, on one connection."""
    code = """
        import torch.distributed as dist
        dist.init_process_group("gloo")
        dist.barrier()
        dist.destroy_process_group()
    """
    with StoreServer() as server:
        with Proxy(server.port) as proxy:
            run_ranks(need_torch(NEW_TORCH), code, proxy.port, size)
        assert len(proxy.streams) == size
        for stream in proxy.streams:
            names = operations_of(bytes(stream))
            counts = {name: names.count(name) for name in set(names)}
            assert counts == {"VALIDATE": 1, "PING": 1, "ADD": 1, "SET": 1, "WAIT": 2 * size,
                              "GET": size}
        client = server.join()
        client.sendall(b"\x07")
        assert receive(client, 8) == i64(size + 1)


def test_ten_attempts_on_fresh_stores_pass():
    """Conformance 62: the ranks of each attempt die after init without a word, as workers that are
    killed do; the next attempt meets a new store, though on the same port. A rank of an attempt is
    forked from a process that has only imported torch, which saves importing it 20 times."""
    code = """
        import os, sys, torch, torch.distributed as dist
        for attempt, port in enumerate(sys.stdin):
            child = os.fork()
            if child == 0:
                os.environ.update(MASTER_PORT=port.strip(), TORCHELASTIC_RESTART_COUNT=str(attempt))
                dist.init_process_group("gloo")
                dist.all_reduce(torch.ones(1))
                os._exit(0)
            print(os.waitpid(child, 0)[1], flush=True)
    """
    ranks = start_ranks(need_torch(NEW_TORCH), code, 0, 2)
    port = 0
    for _ in range(10):
        with StoreServer(f"port={port}") as server:
            port = server.port
            for rank in ranks:
                rank.stdin.write(f"{port}\n")
                rank.stdin.flush()
            assert [rank.stdout.readline() for rank in ranks] == ["0\n"] * 2
            assert server.stop() == (2, [])
    for rank in ranks:
        finish(rank)


@pytest.mark.parametrize("python", [OLD_TORCH, NEW_TORCH])
def test_rpc_starts_calls_and_shuts_down(server, python):
    """Conformance 51, 56."""
    code = """
        import os, torch, torch.distributed.rpc as rpc
        rank = int(os.environ["RANK"])
        rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
        if rank == 0:
            assert rpc.rpc_sync("worker1", torch.add, (torch.ones(1), 2)).item() == 3
        rpc.shutdown()
        print("fine")
    """
    probe = "import torch.distributed.rpc as r; assert r.is_available(); r.init_rpc"
    if subprocess.run([need_torch(python), "-c", probe], capture_output=True,
                      check=False).returncode != 0:
        pytest.skip(f"torch of {python} is built without RPC")
    assert run_ranks(python, code, server.port, 2) == ["fine\n"] * 2
