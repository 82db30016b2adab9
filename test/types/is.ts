type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** `is<Wanted>()(value)` compiles only if the value's type is exactly the wanted one. */
export function is<Wanted>() {
  return <Actual>(
    ..._: Same<Wanted, Actual> extends true ? [value: Actual] : [value: Actual, isNot: Wanted]
  ): void => {}
}
