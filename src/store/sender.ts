export type CommandArg = string | Buffer

export type Command = readonly [command: string, args: readonly CommandArg[]]

/**
 * Why a command may be sent again when the connection breaks before its reply came. `reads`: it changes nothing. `harmless`: its first
 * attempt may arrive after all later calls. `undoes`: running it twice is safe, but running it late would undo what other calls did since;
 * so it is sent again only when the first attempt can no longer arrive.
 */
export type Resend = 'reads' | 'harmless' | 'undoes'

export interface CallOptions {
  /** Without it the command is sent once. */
  readonly resend?: Resend | undefined
  /** When the call began that the command is a part of: its time limit counts from then. */
  readonly startedAt?: number | undefined
  /**
   * The server has answered an earlier command of the call: this one ends by the limit of the call, and not by that of a connection's
   * silence.
   */
  readonly continues?: boolean | undefined
}

/** The part of a connection that runs scripts. It rejects with the package's own errors. */
export interface Sender {
  call(command: string, args: readonly CommandArg[], options?: CallOptions): Promise<unknown>
  /** One result or error per command, in order. */
  pipeline(commands: readonly Command[], options?: Omit<CallOptions, 'resend'>): Promise<unknown[]>
}
