import { readGatewayFleet } from '../playground/gateway-fleet.ts';
import { readGatewayPolicy, versionInForce } from '../playground/gateway-policy.ts';
import type { GatewayPolicy } from '../playground/gateway-policy.ts';
import type { FleetState } from '../playground/state.ts';
import { byId } from './dom.ts';
import type { Notices } from './notices.ts';

export interface GatewayLinkOptions {
  readonly button: HTMLButtonElement;
  readonly notices: Notices;
  readonly load: (policy: GatewayPolicy, fleet: FleetState) => void;
}

/** Where a gateway that serves the page says what to ask it; a static server has an empty object there. */
const GATEWAY_FILE = 'gateway.json';

/** What a gateway answered in place of what it was asked for. */
class Unanswered extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`it answered ${status}`);
    this.status = status;
  }
}

/**
 * Shows the button that reads policy and fleet of the gateway that serves the page, if one does. The admin token is asked for when it is
 * needed, and kept for as long as the page is open.
 */
export async function offerGateway({ button, notices, load }: GatewayLinkOptions): Promise<void> {
  const addresses = await gatewayAddresses();
  if (addresses === undefined) return;
  const dialog = byId('token-dialog', HTMLDialogElement);
  const field = byId('token', HTMLInputElement);
  let token: string | undefined;

  const get = async (address: string): Promise<unknown> => {
    const response = await fetch(address, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Unanswered(response.status);
    return response.json();
  };
  const read = async (): Promise<void> => {
    const fleet = readGatewayFleet(await get(addresses.endpoints));
    const id = versionInForce(await get(addresses.versions));
    const policy =
      id === undefined ? undefined : readGatewayPolicy(await get(`${addresses.versions}/${encodeURIComponent(id)}`));
    if (policy === undefined) notices.say('The gateway did not tell the text of its policy.', 'bad');
    else load(policy, fleet);
  };
  const tryRead = async (): Promise<void> => {
    try {
      await read();
    } catch (error) {
      if (!(error instanceof Unanswered)) {
        notices.say('The gateway could not be reached. Is it running still?', 'bad');
      } else if (error.status === 401) {
        token = undefined;
        field.value = '';
        dialog.showModal();
      } else notices.say(`The gateway did not tell its policy and fleet: ${error.message}.`, 'bad');
    }
  };
  dialog.addEventListener('close', () => {
    if (dialog.returnValue !== 'use' || field.value === '') return;
    token = field.value;
    field.value = '';
    void tryRead();
  });
  button.addEventListener('click', () => void tryRead());
  button.hidden = false;
}

async function gatewayAddresses(): Promise<{ readonly endpoints: string; readonly versions: string } | undefined> {
  const found = await fetch(new URL(GATEWAY_FILE, document.baseURI))
    .then((response): Promise<unknown> => (response.ok ? response.json() : Promise.resolve({})))
    .catch(() => ({}));
  const { endpoints, versions } = found as { readonly endpoints?: unknown; readonly versions?: unknown };
  if (typeof endpoints !== 'string' || typeof versions !== 'string') return undefined;
  const addresses = [endpoints, versions].map((path) => new URL(path, document.baseURI));
  // A page must not be told to send a token elsewhere.
  if (addresses.some(({ origin }) => origin !== location.origin)) return undefined;
  const [first = '', second = ''] = addresses.map(({ href }) => href);
  return { endpoints: first, versions: second };
}
