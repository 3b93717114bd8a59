/** Preloaded into a process to make its clock wrong by CLOCK_OFFSET_SECONDS. */
const offset = Number(process.env.CLOCK_OFFSET_SECONDS ?? 0) * 1000;
if (offset !== 0) {
  const wallClock = Date.now;
  Date.now = () => wallClock() + offset;
  globalThis.Date = class extends Date {
    constructor(...args) {
      super(...(args.length === 0 ? [Date.now()] : args));
    }
  };
  globalThis.Date.now = () => wallClock() + offset;
}
