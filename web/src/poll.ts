// Repeats a task while the page is looked at. One run at a time; a run that fails makes the pauses longer.

export interface Poll {
  /** Runs the task now and starts the pause anew. */
  now(): void;
  setActive(active: boolean): void;
  stop(): void;
}

const kLongestPauseMs = 60_000;
// A site with very many units takes its time to answer; it is not to spend all of it on us.
const kPausePerWork = 10;

/** `task` gives false when it failed. The signal fires on stop() and when now() overtakes a run. */
export function startPoll(task: (signal: AbortSignal) => Promise<boolean>, everyMs: number): Poll {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: AbortController | null = null;
  let active = true;
  let stopped = false;
  let due = false; // the pause ended while nobody looked
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
    pause = Math.min(wanted, kLongestPauseMs);
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
  void run();
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
