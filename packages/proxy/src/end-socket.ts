import type { Duplex } from 'node:stream';
import type { Timers } from './timers.ts';

/**
 * Ends a connection with a last answer. What the client still sends is read and thrown away, since a close would reset the connection
 * before it has read the answer; a client that does not close by itself within `lingerMs` is cut.
 */
export function endSocket(socket: Duplex, answer: string, timers: Timers, lingerMs: number): void {
  const timer = timers.setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => timers.clearTimeout(timer));
  socket.on('error', () => socket.destroy());
  socket.end(answer);
  socket.resume();
}
