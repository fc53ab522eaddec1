// What is far below the window is loaded and drawn when one comes near it.

const kNear = 1200; // px

/** Calls `then` once, when the element is in the window or not far from it, which is in `px`. The result ends the waiting. */
export function whenNear(element: Element, then: () => void, px = kNear): () => void {
  const observer = new IntersectionObserver(
    (seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      then();
    },
    { rootMargin: `${px}px` },
  );
  observer.observe(element);
  return () => observer.disconnect();
}
