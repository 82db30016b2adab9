export type CommandArg = string | Buffer

/**
 * Why a command may be sent again when the connection breaks before its reply came: it only `reads`; it does no harm when its first attempt arrives after all
 * later calls (`harmless`); or it can be carried out twice, but `undoes` what other calls do after it. Then it is sent again only once an earlier attempt
 * cannot be carried out any more.
 */
export type Resend = 'reads' | 'harmless' | 'undoes'

export interface CallOptions {
  /** Without it the command is sent once. */
  readonly resend?: Resend | undefined
  /** When the call began that the command is a part of: its time limit counts from then. */
  readonly startedAt?: number | undefined
  /** The server has answered an earlier command of the call: this one ends by the limit of the call, and not by that of a connection's silence. */
  readonly continues?: boolean | undefined
}

/** The part of a connection that runs scripts. It rejects with the package's own errors. */
export interface Sender {
  call(command: string, args: readonly CommandArg[], options?: CallOptions): Promise<unknown>
  /** One result or error per command, in order. */
  pipeline(
    commands: readonly (readonly [command: string, args: readonly CommandArg[]])[],
    options?: Omit<CallOptions, 'resend'>,
  ): Promise<unknown[]>
}
