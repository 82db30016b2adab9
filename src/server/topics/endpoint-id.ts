/** The id of an endpoint, as a pattern of a schema. */
export const ENDPOINT_ID = '^ep_[A-Za-z0-9_-]{16}$'
