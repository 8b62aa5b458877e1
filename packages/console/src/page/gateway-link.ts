import { readGatewayFleet } from '../playground/gateway-fleet.ts';
import type { FleetState } from '../playground/state.ts';
import { byId } from './dom.ts';
import type { Notices } from './notices.ts';

export interface GatewayLinkOptions {
  readonly button: HTMLButtonElement;
  readonly notices: Notices;
  readonly load: (fleet: FleetState) => void;
}

/** Where a gateway that serves the page says so; a static server has an empty object there. */
const GATEWAY_FILE = 'gateway.json';

/** Shows the button that reads the fleet of the gateway that serves the page, if one does. The token is kept for as long as the page is open. */
export async function offerGateway({ button, notices, load }: GatewayLinkOptions): Promise<void> {
  const found = await fetch(new URL(GATEWAY_FILE, document.baseURI))
    .then((response) => (response.ok ? (response.json() as Promise<{ readonly endpoints?: string }>) : {}))
    .catch(() => ({}));
  const { endpoints } = found as { readonly endpoints?: string };
  if (typeof endpoints !== 'string') return;
  const address = new URL(endpoints, document.baseURI);
  // A page must not be told to send a token elsewhere.
  if (address.origin !== location.origin) return;
  const dialog = byId('token-dialog', HTMLDialogElement);
  const field = byId('token', HTMLInputElement);
  let token: string | undefined;
  const read = async (): Promise<void> => {
    const response = await fetch(address, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
    if (response.status === 401) {
      token = undefined;
      field.value = '';
      dialog.showModal();
      return;
    }
    if (!response.ok) {
      notices.say(`The gateway did not tell its fleet: it answered ${response.status}.`, 'bad');
      return;
    }
    load(readGatewayFleet(await response.json()));
  };
  const tryRead = (): void =>
    void read().catch(() => notices.say('The gateway could not be reached. Is it running still?', 'bad'));
  dialog.addEventListener('close', () => {
    if (dialog.returnValue !== 'use' || field.value === '') return;
    token = field.value;
    tryRead();
  });
  button.addEventListener('click', tryRead);
  button.hidden = false;
}
