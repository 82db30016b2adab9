import { InvalidArgumentError } from '../errors.js'
import type { Claim } from '../store/reliable-scripts.js'

/** `<digit of the priority, or g>`, `<attempts> <token>` or `<attempts> ~<token>`, and the id. */
const FORM = /^([\dg])(\d{1,15} ~?[\x21-\x7d]{1,64})\n/
/** More than the longest receipt: an id of 576 bytes and the fields before it. */
const MAX_LENGTH = 1_024

/** One delivery as a text of URL-safe characters, with which every process can acknowledge it. */
export function receiptOf({ member, delivery }: Claim): string {
  const bytes = typeof member === 'string' ? Buffer.from(member) : member
  return Buffer.concat([bytes.subarray(0, 1), Buffer.from(`${delivery}\n`), bytes.subarray(1)]).toString('base64url')
}

/** @throws InvalidArgumentError it is not a receipt */
export function claimOf(what: string, receipt: string): Claim {
  const bytes = Buffer.from(receipt.length > MAX_LENGTH ? '' : receipt, 'base64url')
  const [head = '', priority = '', delivery = ''] = FORM.exec(bytes.toString('latin1')) ?? []
  const isWhole = head !== '' && bytes.length > head.length && bytes.toString('base64url') === receipt
  if (!isWhole) throw new InvalidArgumentError(what, 'a message, or the receipt of one', receipt)
  const idBytes = bytes.subarray(head.length)
  return { id: idBytes.toString(), member: Buffer.concat([Buffer.from(priority), idBytes]), delivery }
}
