import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Timers } from '../../../packages/proxy/src/timers.ts';

/** What happens on the way back from the server, per connection. */
export interface WayBack {
  /** Each read is held for so long. */
  readonly delayMs?: number;
  /** After so many bytes the rest is lost. */
  readonly loseAfter?: number;
  /** What loss looks like: silence, as of a dead link, or a reset, as of a dead host. */
  readonly lossIs?: 'stall' | 'reset';
}

/** Stands between the gateway and a server and delays or loses bytes on the way back. TCP only; the way there is untouched. */
export class FaultProxy {
  origin = '';
  wayBack: (index: number) => WayBack = () => ({});
  readonly sockets: Set<Socket> = new Set<Socket>();
  readonly #server: Server;
  #connections = 0;

  constructor(port: number, timers: Timers) {
    this.#server = createServer((near) => {
      const { delayMs = 0, loseAfter = Number.POSITIVE_INFINITY, lossIs = 'stall' } = this.wayBack(this.#connections++);
      const far = connect(port, '127.0.0.1');
      for (const socket of [near, far]) {
        this.sockets.add(socket);
        socket.setNoDelay(true);
        socket.on('error', () => undefined);
        socket.on('close', () => this.sockets.delete(socket));
      }
      near.pipe(far);
      near.on('close', () => far.destroy());
      let passed = 0;
      const pass = (data: Buffer): void => {
        if (near.destroyed || passed >= loseAfter) return;
        near.write(data.subarray(0, loseAfter - passed));
        passed += data.length;
        if (passed >= loseAfter && lossIs === 'reset') near.resetAndDestroy();
      };
      far.on('data', (data: Buffer) => {
        if (delayMs > 0) timers.setTimeout(() => pass(data), delayMs);
        else pass(data);
      });
      far.on('end', () => {
        if (passed < loseAfter) near.end();
      });
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this.origin;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}
