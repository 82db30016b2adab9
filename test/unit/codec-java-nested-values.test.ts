import { expect } from 'chai'
import { EncodeError, type Codec } from '../../src/index.js'
import { java, javaCodecs } from '../../src/java/index.js'

const NESTED = java.of('com.x.Y', java.of('com.x.Z', 1))

describe('a JavaValue in a JavaValue', () => {
  for (const codec of [javaCodecs.jsonJackson(), javaCodecs.cborJackson(), javaCodecs.msgpackJackson()] as Codec[])
    it(`${codec.name}: comes back with both classes, alone and in a list`, () => {
      for (const value of [NESTED, [NESTED]]) expect(codec.decode(codec.encode(value))).to.deep.equal(value)
    })

  for (const codec of [javaCodecs.kryo5(), javaCodecs.typedJsonJackson()] as Codec[])
    it(`${codec.name}: is refused with its path, as the class is not declared`, () => {
      expect(() => codec.encode([NESTED])).to.throw(EncodeError, /at \$\[0\]: .*com\.x\.Y/)
    })

  for (const codec of [
    javaCodecs.kryo5(),
    javaCodecs.typedJsonJackson(),
    javaCodecs.jsonJackson(),
    javaCodecs.cborJackson(),
    javaCodecs.msgpackJackson(),
  ] as Codec[])
    it(`${codec.name}: is refused where a number is made of a number with a class`, () => {
      const value = java.of('java.lang.Long', java.int(5))
      expect(() => codec.encode(value)).to.throw(
        EncodeError,
        /a java\.lang\.Long cannot be made of a java\.lang\.Integer/,
      )
    })
})
