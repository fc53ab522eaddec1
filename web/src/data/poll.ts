// Repeats a task while the page is visible. One run at a time. The pauses get longer after failures.

export interface Poll {
  /** Runs the task now and restarts the pause. */
  now(): void;
  setActive(active: boolean): void;
  stop(): void;
}

const kMaxPauseMs = 60_000;
// A server with very many units responds slowly, and polling must not keep it busy all the time.
const kPausePerWork = 10;

/** `task` returns false if it failed. The signal fires on stop() and when now() interrupts a run. `first`: it runs at once, not after a pause. */
export function startPoll(task: (signal: AbortSignal) => Promise<boolean>, everyMs: number, first = true): Poll {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: AbortController | null = null;
  let active = true;
  let stopped = false;
  let due = false; // the pause ended while the page was hidden
  let pause = everyMs;

  async function run(): Promise<void> {
    clearTimeout(timer);
    running?.abort();
    const mine = new AbortController();
    running = mine;
    const begin = performance.now();
    const good = await task(mine.signal);
    if (running !== mine || stopped) return;
    running = null;
    const wanted = good ? Math.max(everyMs, kPausePerWork * (performance.now() - begin)) : 2 * pause;
    pause = Math.min(wanted, kMaxPauseMs);
    wait();
  }

  function wait(): void {
    clearTimeout(timer);
    if (active) timer = setTimeout(elapsed, pause);
  }

  function elapsed(): void {
    if (document.hidden) due = true;
    else void run();
  }

  function visible(): void {
    if (document.hidden || !due || !active) return;
    due = false;
    void run();
  }

  document.addEventListener("visibilitychange", visible);
  if (first) void run();
  else wait();
  return {
    now() {
      pause = everyMs;
      void run();
    },
    setActive(to) {
      if (to === active) return;
      active = to;
      if (active) void run();
      else clearTimeout(timer);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      running?.abort();
      document.removeEventListener("visibilitychange", visible);
    },
  };
}
