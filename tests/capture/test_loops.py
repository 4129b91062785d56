"""Loops: the answer of the plain function, from a number of compiles that does not grow."""

from __future__ import annotations

import numpy as np
import pytest

import np_compile

from ..support import check, compiled, counted_nodes, data, same


def test_a_thousand_time_steps_compile_one_body_once():
    def heat(u, steps):
        for _ in range(steps):
            u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
        return u

    fast, counter = compiled(heat)
    want, got = data(32), data(32)
    heat(want, 1000)
    fast(got, 1000)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert counter.count <= 2
    before = counter.count
    fast(got, 1500)
    assert counter.count == before


def test_a_step_out_of_place_compiles_a_bounded_number_of_times():
    def f(u, v, steps, dt):
        for k in range(steps):
            a = -np.sin(u) * (k + 1) ** 0
            v = v + dt * a
            u = u + dt * v
        return u, v

    c = check(f, data(16), data(16, seed=1), 200, 0.01, rtol=1e-10)
    assert c.compiles <= 4


def test_short_loops_are_one_segment():
    def f(x):
        for i in range(5):
            x = np.sin(x) + i
        return x

    e = np_compile.explain(np_compile.compile(f, backend="eager"))(data(4))
    assert len(e.segments) == 1
    assert e.breaks == []


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 20, 40])
def test_any_number_of_iterations(n):
    def f(x, n):
        total = np.zeros_like(x)
        for i in range(n):
            total += x * i
            x = x + 0.5
        return total, x

    check(f, data(5), n)


def test_walking_indices_compile_at_most_twice():
    def f(x):
        total = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                total += x[i, j] * (i + j)
        return total

    c = check(f, data(9, 11), rtol=1e-10)
    assert c.compiles <= 2
    assert c.compiles_on_new_data == 0


def test_changing_indices_from_call_to_call():
    def f(x, i, j):
        return x[i, j] + x[i] * 2 - x[:, j][: x.shape[1]]

    fast, counter = compiled(f)
    x = data(5, 5)
    for i in range(-5, 5):
        for j in range(-5, 5):
            np.testing.assert_allclose(fast(x, i, j), f(x, i, j))
    assert counter.count <= 3
    for wrong in ((5, 0), (0, 5), (-6, 0)):
        with pytest.raises(IndexError, match="out of bounds"):
            fast(x, *wrong)


def test_changing_slices_beside_index_arrays():
    def f(x, rows, i):
        y = x[i : i + 3, rows] * 2
        x[rows, i : i + 2] += i
        x[i, rows] = y[0]
        return y, x[rows, i]

    fast, _counter = compiled(f)
    rows = np.array([2, 0, 2])
    for i in (0, 1, 2, 1, 0, 2):
        want, got = data(5, 5), data(5, 5)
        same(fast(got, rows, i), f(want, rows, i))
        np.testing.assert_array_equal(got, want)


def test_writing_at_walking_indices():
    def f(x, y):
        for i in range(1, len(x)):
            x[i] = x[i - 1] * 0.5 + y[i]
            y[-i] += x[i]
        return x.sum()

    check(f, data(30), data(30, seed=1), rtol=1e-10)


def test_writing_rows_and_columns_at_walking_indices():
    def f(x):
        n = len(x)
        for k in range(n):
            x[k] /= np.abs(x[k]).sum() + 1
            x[:, k] -= x[:, k].mean()
            x[k, k:] += 1
        return x

    check(f, data(12, 12), rtol=1e-10)


def test_gaussian_elimination():
    def f(a, b):
        n = len(b)
        for k in range(n - 1):
            for i in range(k + 1, n):
                w = a[i, k] / a[k, k]
                a[i, k:] = a[i, k:] - w * a[k, k:]
                b[i] = b[i] - w * b[k]
        x = np.zeros(n)
        for i in range(n - 1, -1, -1):
            x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
        return x

    check(f, data(6, 6) + 6 * np.eye(6), data(6, seed=1), rtol=1e-9, new=False)


def test_nested_loops():
    def f(x):
        out = np.zeros((4, 5))
        for i in range(4):
            row = x[i] * 2
            for j in range(5):
                for k in range(2):
                    out[i, j] += row[j] * k
        return out

    check(f, data(4, 5))


def test_long_nested_loops():
    def f(x, n, m):
        for i in range(n):
            for j in range(m):
                x = np.cos(x) + 0.1 * (i - j)
        return x

    c = check(f, data(6), 20, 12, rtol=1e-9)
    assert c.compiles <= 6


def test_while_loops_on_python_and_array_values():
    def f(x, n):
        while n > 0:
            x = x * 0.5
            n -= 1
        err = 1.0
        steps = 0
        while err > 1e-3:
            new = np.cos(x)
            err = np.abs(new - x).max()
            x = new
            steps += 1
        return x, steps, err

    c = check(f, data(5), 3, rtol=1e-9)
    assert c.compiles <= 5


def decay(x, te, dt):
    t = 0.0
    while t < te:
        x = x + dt * (np.sin(x) - 0.5 * x)
        t += dt
    return x


def by_list(x, te, dt):
    for step in [dt] * int(te / dt):
        x = x + step * np.cos(x)
    return x


def by_helper(x, te, dt):
    def slope(y):
        return np.tanh(y) - 0.5 * y

    steps = 0
    while steps * dt < te:
        a = slope(x)
        b = slope(x + dt / 2 * a)
        x = x + dt * (a + b) / 2
        steps += 1
    return x, steps


def with_a_history(x, te, dt):
    t, states = 0.0, [x]
    while t < te:
        states.append(states[-1][::-1] * (1 - dt))
        t += dt
    return states[-1], len(states), states[::50], t


def with_short_loops_inside(x, te, dt):
    t = 0.0
    while t < te:
        for i in range(3):
            x[i::3] = x[i::3] * 0.9 + dt * i
        t += dt
    return x


def views_of_views(x, te, dt):
    y = x[1:][::-1]
    n = int(te / dt)
    while n:
        y[1:][::2] += dt * x[:-1][1:][::2]
        n -= 1
    return x, y


WITHOUT_MARKS = [
    decay, by_list, by_helper, with_a_history, with_short_loops_inside, views_of_views,
]  # fmt: skip


@pytest.mark.parametrize("f", WITHOUT_MARKS)
def test_loops_without_marks_compile_their_body(f):
    c = check(f, data(12), 2.0, 0.005, rtol=1e-9)
    assert c.compiles <= 4
    with np_compile.config.patch(plain="never"):
        for steps in (397, 401, 500, 777):
            x = data(12)
            want = f(x.copy(), steps * 0.005, 0.005)
            got = c.compiled(x.copy(), steps * 0.005, 0.005)
            same(got, want, rtol=1e-9)
        fast, counter = compiled(f)
        for te in (2.0, 2.1, 2.35):
            fast(data(12), te, 0.005)
        assert counter.count <= 4
        segments = np_compile.explain(fast)(data(12), 2.0, 0.005).segments
    body = max(segments, key=lambda s: s.runs)
    assert body.runs > 300
    assert len(body.calls) <= 16
    assert max(len(s.calls) for s in segments) < 200


@pytest.mark.parametrize("f", WITHOUT_MARKS)
@pytest.mark.parametrize("plain", ["auto", "always"])
def test_loops_without_marks_in_numpy(f, plain):
    c = check(f, data(12), 2.0, 0.005, rtol=1e-9, plain=plain)
    assert c.compiles <= 4


def test_a_loop_without_marks_is_cut_at_its_iterations():
    e = np_compile.explain(np_compile.compile(decay, backend="eager"))
    with np_compile.config.patch(plain="never"):
        first = e(data(4), 3.0, 0.01)
    assert first.breaks == []
    often = max(first.segments, key=lambda s: s.runs)
    assert (len(often.calls), often.runs > 280) == (5, True)
    report = np_compile.explain(np_compile.compile(decay, backend="eager"))(data(4), 3.0, 0.01)
    assert any("beginning of a loop" in b.reason for b in report.breaks)


def test_the_beginning_of_a_loop_is_compiled_when_it_comes_again():
    call = np_compile.explain(np_compile.compile(decay, backend="eager"))
    reports = [call(data(4), 3.0, 0.01) for _ in range(2)]
    said = [any("beginning of a loop" in b.reason for b in r.breaks) for r in reports]
    assert said == [True, False]
    assert max(len(s.calls) for s in reports[1].segments) > 60


def test_short_marked_loops_in_one_another_are_one_segment():
    def f(x):
        for i in range(5):
            for j in range(4):
                x = np.sin(x) + i * x - j * 0.5
        for i in range(8):
            x = np.cos(x) * i + x
        return x

    e = np_compile.explain(np_compile.compile(f, backend="eager"))(data(4))
    assert len(e.segments) == 1
    assert e.breaks == []


def test_short_loops_without_marks_are_one_segment():
    e = np_compile.explain(np_compile.compile(decay, backend="eager"))(data(4), 0.05, 0.01)
    assert len(e.segments) == 1
    assert e.breaks == []


def test_a_short_loop_of_a_long_body_is_cut_at_its_iterations():
    def f(x):
        for _ in range(6):
            for i in range(3):
                x = np.sin(x) + np.cos(x) * i
                x = x - x.mean() + np.tanh(x)
                x = np.roll(x, 1) / (1 + x * x)
        return x

    c = check(f, data(5), rtol=1e-9)
    assert c.compiles <= 3
    with np_compile.config.patch(plain="never"):
        segments = np_compile.explain(c.compiled)(data(5)).segments
    assert max(len(s.calls) for s in segments) < 45


def test_recursion_compiles_a_bounded_number_of_times():
    def transform(x):
        if len(x) == 1:
            return x + 0j
        even, odd = transform(x[::2]), transform(x[1::2])
        w = np.exp(-2j * np.pi * np.arange(len(x) // 2) / len(x))
        return np.concatenate([even + w * odd, even - w * odd])

    c = check(lambda x: np.abs(transform(x)), data(64), rtol=1e-9, plain="auto")
    assert c.compiles <= 6


def test_short_loops_in_one_another_compile_a_bounded_number_of_times():
    def f(a, b):
        total = np.zeros((2, 2))
        for i in range(2):
            for j in range(3):
                for k in range(2):
                    for m in range(3):
                        for n in range(2):
                            for p in range(4):
                                total += a[i, k] * b[j, m % 2] * (n + p) * a
        return total

    c = check(f, data(2, 2), data(3, 2), rtol=1e-10)
    assert c.compiles <= 4
    e = np_compile.explain(c.compiled)(data(2, 2), data(3, 2))
    assert max(len(s.calls) for s in e.segments) < 100


def test_a_convergence_loop_compiles_its_body_once():
    def f(x):
        n = 0
        while True:
            y = 0.5 * (x + 2 / x)
            n += 1
            if np.abs(y - x).max() < 1e-12 or n >= 200:
                return y, n
            x = y

    c = check(f, np.linspace(1, 1e6, 7))
    assert c.compiles <= 3


def test_break_continue_return_else():
    def f(x, stop):
        total = np.zeros_like(x)
        for i in range(20):
            if i % 3 == 0:
                continue
            total += x * i
            if i == stop:
                break
            if total[0] > 1e3:
                return "early", total
        else:
            return "all", total
        return "broken", total

    for stop in (4, 100):
        check(f, data(3), stop)
    check(f, data(3) + 100, 100)


def test_enumerate_zip_reversed_and_steps():
    def f(x, y):
        total = 0
        for i, r in enumerate(x):
            total = total + r * i
        for a, b in zip(x, y, strict=True):
            total = total - a * b
        for i in reversed(range(len(x))):
            total = total * 0.5 + x[i]
        for i in range(len(x) - 1, 0, -2):
            total = total + y[i]
        for i, (a, b) in enumerate(zip(x, y[::-1], strict=True), start=2):
            total = total + a * b / i
        return total

    check(f, data(10, 3), data(10, 3, seed=1))


def test_the_range_of_user_code_is_a_range():
    def f(x):
        r = range(2, 12, 3)
        a, b, *c = r
        return (
            list(r), r[1], r[-1], len(r), 5 in r, r == range(2, 12, 3), r.start, r.step, a + b, c,
            sum(r),
            isinstance(r, range), list(reversed(r)), [*r][::2], r[1:], bool(range(0)), max(r),
            tuple(r),
            list(zip(r, range(4), strict=True)), {i: i for i in r}, np.array(r), x[list(r)],
            r.index(5), str(r),
        )  # fmt: skip

    check(f, data(12))


def test_loops_over_rows():
    def f(x):
        out = []
        for row in x:
            out.append(row / np.sqrt((row**2).sum()))  # noqa: PERF401
        for row in x:
            row += 1
        for row in x[::-2]:
            row[0] = 9
        return np.array(out), x

    check(f, data(20, 3))


def test_batches():
    def f(x, w, b):
        losses = []
        for i in range(len(x) // b):
            part = x[i * b : (i + 1) * b]
            y = part @ w
            w = w - 0.01 * part.T @ y
            losses.append((y**2).mean())
        return w, losses

    c = check(f, data(60, 3), data(3), 4, rtol=1e-9)
    assert c.compiles <= 4


def test_a_ragged_last_batch():
    def f(x, b):
        return [x[i : i + b].sum(axis=0) for i in range(0, len(x), b)]

    check(f, data(23, 2), 4)


def test_growing_lists_and_slices():
    def f(x):
        out = [x[0]]
        for i in range(1, len(x)):
            out.append(out[-1] + x[: i + 1].sum())
        return np.array(out), np.stack([x[i:].sum() * np.ones(2) for i in range(3)])

    check(f, data(12), rtol=1e-10)


def test_element_loops_end_in_few_recordings_and_compiles():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * y[i]
        return s

    x, y = data(20_000), data(20_000, seed=1)
    fast, counter = compiled(f)
    want = f(x, y)
    fast(x, y)
    got = fast(x, y)
    np.testing.assert_allclose(got, want, rtol=1e-10)
    assert type(got) is type(want)
    assert counter.count <= 3
    assert counted_nodes(fast) <= 20  # of iterations, of which there are 20,000


def test_an_element_loop_that_writes():
    def f(x):
        for i in range(1, len(x) - 1):
            x[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
        return x

    c = check(f, data(500), rtol=1e-10)
    assert c.compiles <= 3


def test_a_two_dimensional_element_loop_that_writes():
    def f(u, v):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        return v

    check(f, data(20, 20), np.zeros((20, 20)), rtol=1e-10)


def test_the_number_of_steps_does_not_change_what_is_compiled():
    def f(x, n):
        for _ in range(n):
            x = x + np.sin(x) * 0.1
        return x

    fast, counter = compiled(f)
    fast(data(4), 50)
    before = counter.count
    for n in (60, 100, 300):
        np.testing.assert_allclose(fast(data(4), n), f(data(4), n), rtol=1e-10)
    assert counter.count == before


def test_state_in_an_object_over_steps():
    class World:
        def __init__(self, n):
            self.position = data(n, 2)
            self.velocity = data(n, 2, seed=1)
            self.time = 0.0

        def step(self, dt):
            self.velocity -= self.position * dt
            self.position = self.position + self.velocity * dt
            self.time += dt

    def f(world, n):
        for _ in range(n):
            world.step(0.01)
        return world.position.sum()

    check(f, World(5), 30, rtol=1e-10)


def test_a_history_of_states():
    def f(x, n):
        history = np.empty((n, *x.shape))
        for t in range(n):
            x = x * 0.9 + 0.1 * np.roll(x, 1)
            history[t] = x
        return history, x

    c = check(f, data(6), 25, rtol=1e-10)
    assert c.compiles <= 4


def test_double_buffers_swap():
    def f(u, v, n):
        for _ in range(n):
            v[1:-1] = 0.5 * (u[2:] + u[:-2])
            u, v = v, u
        return u

    c = check(f, data(10), data(10), 15, rtol=1e-10)
    assert c.compiles <= 4


def test_dynamic_sizes_inside_a_loop():
    def f(x):
        while len(x) > 1:
            x = x[::2] + x[1::2]
        return x[0]

    check(f, data(32), rtol=1e-10)


def test_comprehension_over_a_range_with_indices():
    def f(x):
        return np.array([[x[i] * x[j] for j in range(4)] for i in range(4)]), [
            x[i : i + 3].max() for i in range(12)
        ]

    check(f, data(15))


def test_loop_variables_after_the_loop():
    def f(x):
        for i in range(10):
            y = x + i
        return y, i

    check(f, data(3))


def test_loops_of_a_few_light_iterations_are_one_segment():
    def f(x, k, n):
        out = np.zeros(90)
        for i in range(n):
            out = out + k[i] * x[i : i + 90]
        return out

    fast = np_compile.compile(f, backend="eager")
    args = np.arange(130.0), np.arange(40.0)
    with np_compile.config.patch(plain="never", loops="recorded"):
        few, many = (np_compile.explain(fast)(*args, n).segments for n in (9, 40))
    assert len(few) == 1
    assert len(many) > 1


@pytest.mark.parametrize("step", [1, -1])
def test_a_range_beyond_what_len_tells(step):
    def f(x, n):
        for i in range(0, step * n, step):
            x = x + i
            for j in reversed(range(-n, n)):
                x = x * 0.5
                if x.sum() < j:
                    break
            if i * step > 11:
                break
        return x, i, j

    check(f, np.ones(3), 10**30)
