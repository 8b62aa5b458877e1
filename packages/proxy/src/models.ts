import type { ModelInfo } from '@signalbox/core';

/** One text for a model that does not exist and for one that is not for this caller, so that names cannot be probed. */
export const UNKNOWN_MODEL = 'The model does not exist, or you may not use it.';

interface ModelObject {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
  readonly max_model_len?: number;
}

function toObject(model: ModelInfo): ModelObject {
  const base = { id: model.id, object: 'model', created: 0, owned_by: model.ownedBy } as const;
  return model.maxModelLen === undefined ? base : { ...base, max_model_len: model.maxModelLen };
}

/** The answer to `GET /v1/models`. */
export function modelList(models: readonly ModelInfo[]): string {
  return JSON.stringify({ object: 'list', data: models.map(toObject) });
}

/** The answer to `GET /v1/models/{id}`; undefined if there is no such model. */
export function modelById(models: readonly ModelInfo[], id: string): string | undefined {
  const found = models.find((model) => model.id === id);
  return found === undefined ? undefined : JSON.stringify(toObject(found));
}

/** The id in the path of `GET /v1/models/{id}`: all of the rest, decoded once; undefined if it cannot be decoded. */
export function modelIdOf(path: string): string | undefined {
  try {
    return decodeURIComponent(path.slice('/v1/models/'.length));
  } catch {
    return undefined;
  }
}
