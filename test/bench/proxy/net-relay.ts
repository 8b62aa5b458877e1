/**
 * The raw relay: node:net on both sides and no HTTP. Bytes that a client's connection brings go to the endpoint with the fewest open connections, bytes that come back go to the
 * client, as they are: what Node itself costs per wake-up and write, below any gateway. One connection to an endpoint for each of a client, both held until either ends.
 *
 * Run: `node test/bench/proxy/net-relay.ts LISTEN_PORT ENDPOINT_PORT…`
 */
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';

interface Endpoint {
  readonly port: number;
  connections: number;
}

const [listenPort = 0, ...endpointPorts] = process.argv.slice(2).map(Number);
const endpoints: Endpoint[] = endpointPorts.map((port) => ({ port, connections: 0 }));

function leastBusy(): Endpoint {
  const [first] = endpoints;
  if (first === undefined) throw new Error('no endpoint ports were given');
  let best = first;
  for (const endpoint of endpoints) if (endpoint.connections < best.connections) best = endpoint;
  return best;
}

/** Writes what `from` brings to `to`, no faster than `to` takes it. */
function pass(from: Socket, to: Socket): void {
  from.on('data', (chunk: Buffer) => {
    if (!to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.on('end', () => to.end());
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroy());
}

const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const endpoint = leastBusy();
  endpoint.connections++;
  const upstream = connect({ port: endpoint.port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
  upstream.once('close', () => endpoint.connections--);
  pass(client, upstream);
  pass(upstream, client);
});
server.listen(listenPort, '127.0.0.1', 4096);
