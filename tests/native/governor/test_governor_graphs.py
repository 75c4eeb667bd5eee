"""Memory that graphs allocate, on a driver that has graphs."""

from tests.native.governor.shares import ShareOnDisk, told


def test_an_executable_graph_is_charged_until_it_and_its_memory_are_gone(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        """
begin(); seen = [used() // MIB]
g, node = graph(), AllocationNode(30 * MIB)
check(allocation_node(g, node)); seen.append(used() // MIB)
r, e = executable(g); check(r); seen.append(used() // MIB)
s = stream()
for _ in range(2):
    check(cuda.cuGraphLaunch(e, s))
    check(cuda.cuMemFreeAsync(ctypes.c_ulonglong(node.pointer), s))
check(cuda.cuStreamSynchronize(s)); seen.append(used() // MIB)
check(cuda.cuGraphDestroy(g)); seen.append(used() // MIB)
check(cuda.cuGraphExecDestroy(e)); seen.append(used() // MIB)
say(seen)
"""
    )
    assert seen == [20, 50, 50, 50, 50, 20]


def test_nodes_past_the_limit_are_out_of_memory_and_take_nothing(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        """
begin(); before = really_used()
g = graph(); first, second = AllocationNode(60 * MIB), AllocationNode(30 * MIB)
r = [allocation_node(g, first), allocation_node(g, second), second.pointer]
say([*r, used() // MIB, (really_used() - before) // MIB, alloc(21 * MIB)[0], alloc(20 * MIB)[0]])
"""
    )
    assert seen == [0, 2, 0, 80, 60, 2, 0]
    assert told(card_share.ledger().devices[0].denied) == 2


def test_a_node_in_another_layout_and_in_a_child_graph_is_seen_too(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        """
class Node(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int * 4), ("alloc", AllocationNode), ("rest", ctypes.c_byte * 120))
begin()
inner, outer, any_node = graph(), graph(), ctypes.c_void_p()
asked = Node((10,), AllocationNode(40 * MIB))
check(cuda.cuGraphAddNode_v2(ref(any_node), inner, None, None, size(0), ref(asked)))
seen = [used() // MIB]
r, e = executable(inner); check(r)
seen.append(used() // MIB)
seen += [allocation_node(outer, AllocationNode(n * MIB)) for n in (41, 40)]
say(seen)
"""
    )
    assert seen == [60, 60, 2, 0]


def test_what_a_capturing_stream_allocates_is_charged(card_share: ShareOnDisk) -> None:
    seen = card_share.run(
        """
begin(); s, g = stream(), ctypes.c_void_p()
check(cuda.cuStreamBeginCapture_v2(s, 2))
r = [cuda.cuMemAllocAsync(ref(p), size(81 * MIB), s), p.value]
r.append(cuda.cuMemAllocAsync(ref(p), size(30 * MIB), s))
check(cuda.cuMemFreeAsync(p, s))
check(cuda.cuStreamEndCapture(s, ref(g))); r.append(used() // MIB)
code, e = executable(g); check(code)
for _ in range(3): check(cuda.cuGraphLaunch(e, s))
check(cuda.cuStreamSynchronize(s)); r.append(used() // MIB)
check(cuda.cuGraphExecDestroy(e)); check(cuda.cuGraphDestroy(g))
say([*r, used() // MIB, alloc(80 * MIB)[0]])
"""
    )
    assert seen == [2, 0x77, 0, 50, 50, 20, 0]
