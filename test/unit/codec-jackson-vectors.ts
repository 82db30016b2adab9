/**
 * Written by the codecs of Redisson 4.7.0 on Jackson 2.20.0 (jackson-dataformat-msgpack 0.9.10) and Java 17: JSON as text, MessagePack
 * and CBOR in hex. `Order` is a class with a field of every kind.
 */
export interface JacksonVector {
  readonly json: string
  readonly typed: string
  readonly msgpack?: string
  readonly cbor: string
}

export const jacksonVectors: Readonly<Record<string, JacksonVector>> = {
  'String hello': {
    json: '"hello"',
    typed: '"hello"',
    msgpack: 'a568656c6c6f',
    cbor: '6568656c6c6f',
  },
  'String empty': {
    json: '""',
    typed: '""',
    msgpack: 'a0',
    cbor: '60',
  },
  'String 40': {
    json: '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"',
    typed: '"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"',
    msgpack: 'd92878787878787878787878787878787878787878787878787878787878787878787878787878787878',
    cbor: '782878787878787878787878787878787878787878787878787878787878787878787878787878787878',
  },
  'String uni': {
    json: '"a\\"bé\\n\u2028\\u001F\u007f\\uD83D\\uDE00"',
    typed: '"a\\"bé\\n\u2028\\u001F\u007f\\uD83D\\uDE00"',
    msgpack: 'af612262c3a90ae280a81f7ff09f9880',
    cbor: '6f612262c3a90ae280a81f7ff09f9880',
  },
  'Int 1': {
    json: '1',
    typed: '1',
    msgpack: '01',
    cbor: '01',
  },
  'Int -1': {
    json: '-1',
    typed: '-1',
    msgpack: 'ff',
    cbor: '20',
  },
  'Int 200': {
    json: '200',
    typed: '200',
    msgpack: 'ccc8',
    cbor: '18c8',
  },
  'Int -200': {
    json: '-200',
    typed: '-200',
    msgpack: 'd1ff38',
    cbor: '38c7',
  },
  'Int 70000': {
    json: '70000',
    typed: '70000',
    msgpack: 'ce00011170',
    cbor: '1a00011170',
  },
  'Int min': {
    json: '-2147483648',
    typed: '-2147483648',
    msgpack: 'd280000000',
    cbor: '3a7fffffff',
  },
  'Int max': {
    json: '2147483647',
    typed: '2147483647',
    msgpack: 'ce7fffffff',
    cbor: '1a7fffffff',
  },
  'Long 1': {
    json: '["java.lang.Long",1]',
    typed: '1',
    msgpack: '92ae6a6176612e6c616e672e4c6f6e6701',
    cbor: '9f6e6a6176612e6c616e672e4c6f6e6701ff',
  },
  'Long 3000000000': {
    json: '["java.lang.Long",3000000000]',
    typed: '3000000000',
    msgpack: '92ae6a6176612e6c616e672e4c6f6e67ceb2d05e00',
    cbor: '9f6e6a6176612e6c616e672e4c6f6e671ab2d05e00ff',
  },
  'Long 5000000000': {
    json: '["java.lang.Long",5000000000]',
    typed: '5000000000',
    msgpack: '92ae6a6176612e6c616e672e4c6f6e67cf000000012a05f200',
    cbor: '9f6e6a6176612e6c616e672e4c6f6e671b000000012a05f200ff',
  },
  'Long max': {
    json: '["java.lang.Long",9223372036854775807]',
    typed: '9223372036854775807',
    msgpack: '92ae6a6176612e6c616e672e4c6f6e67cf7fffffffffffffff',
    cbor: '9f6e6a6176612e6c616e672e4c6f6e671b7fffffffffffffffff',
  },
  'Long min': {
    json: '["java.lang.Long",-9223372036854775808]',
    typed: '-9223372036854775808',
    msgpack: '92ae6a6176612e6c616e672e4c6f6e67d38000000000000000',
    cbor: '9f6e6a6176612e6c616e672e4c6f6e673b7fffffffffffffffff',
  },
  'Double 1.5': {
    json: '1.5',
    typed: '1.5',
    msgpack: 'cb3ff8000000000000',
    cbor: 'fb3ff8000000000000',
  },
  'Double 1.0': {
    json: '1.0',
    typed: '1.0',
    msgpack: 'cb3ff0000000000000',
    cbor: 'fb3ff0000000000000',
  },
  'Double 1e21': {
    json: '1.0E21',
    typed: '1.0E21',
    msgpack: 'cb444b1ae4d6e2ef50',
    cbor: 'fb444b1ae4d6e2ef50',
  },
  'Double nan': {
    json: '"NaN"',
    typed: '"NaN"',
    msgpack: 'cb7ff8000000000000',
    cbor: 'fb7ff8000000000000',
  },
  'Double inf': {
    json: '"Infinity"',
    typed: '"Infinity"',
    msgpack: 'cb7ff0000000000000',
    cbor: 'fb7ff0000000000000',
  },
  'Double -0': {
    json: '-0.0',
    typed: '-0.0',
    msgpack: 'cb8000000000000000',
    cbor: 'fb8000000000000000',
  },
  'Double min': {
    json: '4.9E-324',
    typed: '4.9E-324',
    msgpack: 'cb0000000000000001',
    cbor: 'fb0000000000000001',
  },
  'Float 1.5': {
    json: '1.5',
    typed: '1.5',
    msgpack: 'ca3fc00000',
    cbor: 'fa3fc00000',
  },
  'Boolean true': {
    json: 'true',
    typed: 'true',
    msgpack: 'c3',
    cbor: 'f5',
  },
  'Date 0': {
    json: '["java.util.Date",0]',
    typed: '0',
    msgpack: '92ae6a6176612e7574696c2e4461746500',
    cbor: '9f6e6a6176612e7574696c2e4461746500ff',
  },
  'Date now': {
    json: '["java.util.Date",1732094086123]',
    typed: '1732094086123',
    msgpack: '92ae6a6176612e7574696c2e44617465cf0000019348da4beb',
    cbor: '9f6e6a6176612e7574696c2e446174651b0000019348da4bebff',
  },
  'byte[] 1 2 255': {
    json: '"AQL/"',
    typed: '"AQL/"',
    msgpack: 'c4030102ff',
    cbor: '430102ff',
  },
  'byte[] empty': {
    json: '""',
    typed: '""',
    msgpack: 'c400',
    cbor: '40',
  },
  UUID: {
    json: '["java.util.UUID","00000000-0000-0001-0000-000000000002"]',
    typed: '"00000000-0000-0001-0000-000000000002"',
    msgpack:
      '92ae6a6176612e7574696c2e55554944d92430303030303030302d303030302d303030312d303030302d303030303030303030303032',
    cbor: '9f6e6a6176612e7574696c2e55554944782430303030303030302d303030302d303030312d303030302d303030303030303030303032ff',
  },
  'BigDecimal 1.10': {
    json: '["java.math.BigDecimal",1.10]',
    typed: '1.10',
    msgpack: '92b46a6176612e6d6174682e426967446563696d616ccb3ff199999999999a',
    cbor: '9f746a6176612e6d6174682e426967446563696d616cc48221186eff',
  },
  'BigDecimal 1.5': {
    json: '["java.math.BigDecimal",1.5]',
    typed: '1.5',
    msgpack: '92b46a6176612e6d6174682e426967446563696d616ccb3ff8000000000000',
    cbor: '9f746a6176612e6d6174682e426967446563696d616cc482200fff',
  },
  'BigDecimal 1000': {
    json: '["java.math.BigDecimal",1000]',
    typed: '1000',
    msgpack: '92b46a6176612e6d6174682e426967446563696d616ccd03e8',
    cbor: '9f746a6176612e6d6174682e426967446563696d616cc482001903e8ff',
  },
  'BigInteger 5': {
    json: '["java.math.BigInteger",5]',
    typed: '5',
    msgpack: '92b46a6176612e6d6174682e426967496e746567657205',
    cbor: '9f746a6176612e6d6174682e426967496e7465676572c24105ff',
  },
  'BigInteger big': {
    json: '["java.math.BigInteger",123456789012345678901]',
    typed: '123456789012345678901',
    cbor: '9f746a6176612e6d6174682e426967496e7465676572c24906b14e9f812f366c35ff',
  },
  'BigInteger -big': {
    json: '["java.math.BigInteger",-123456789012345678901]',
    typed: '-123456789012345678901',
    cbor: '9f746a6176612e6d6174682e426967496e7465676572c34906b14e9f812f366c35ff',
  },
  'BigInteger 2^63': {
    json: '["java.math.BigInteger",9223372036854775808]',
    typed: '9223372036854775808',
    msgpack: '92b46a6176612e6d6174682e426967496e7465676572cf8000000000000000',
    cbor: '9f746a6176612e6d6174682e426967496e7465676572c249008000000000000000ff',
  },
  'BigDecimal -1.10': {
    json: '["java.math.BigDecimal",-1.10]',
    typed: '-1.10',
    msgpack: '92b46a6176612e6d6174682e426967446563696d616ccbbff199999999999a',
    cbor: '9f746a6176612e6d6174682e426967446563696d616cc48221386dff',
  },
  'BigDecimal 1E+3': {
    json: '["java.math.BigDecimal",1000]',
    typed: '1000',
    msgpack: '92b46a6176612e6d6174682e426967446563696d616ccd03e8',
    cbor: '9f746a6176612e6d6174682e426967446563696d616cc4820301ff',
  },
  'BigDecimal long': {
    json: '["java.math.BigDecimal",12345678901234567890.123456789]',
    typed: '12345678901234567890.123456789',
    cbor: '9f746a6176612e6d6174682e426967446563696d616cc48228c24c27e41b3246bec9b16e398115ff',
  },
  ArrayList: {
    json: '["java.util.ArrayList",["a",1,["java.lang.Long",2]]]',
    typed: '["a",1,2]',
    msgpack: '92b36a6176612e7574696c2e41727261794c69737493a1610192ae6a6176612e6c616e672e4c6f6e6702',
    cbor: '9f736a6176612e7574696c2e41727261794c6973749f6161019f6e6a6176612e6c616e672e4c6f6e6702ffffff',
  },
  'ArrayList empty': {
    json: '["java.util.ArrayList",[]]',
    typed: '[]',
    msgpack: '92b36a6176612e7574696c2e41727261794c69737490',
    cbor: '9f736a6176612e7574696c2e41727261794c6973749fffff',
  },
  HashSet: {
    json: '["java.util.HashSet",[1]]',
    typed: '[1]',
    msgpack: '92b16a6176612e7574696c2e486173685365749101',
    cbor: '9f716a6176612e7574696c2e486173685365749f01ffff',
  },
  LinkedHashSet: {
    json: '["java.util.LinkedHashSet",[1]]',
    typed: '[1]',
    msgpack: '92b76a6176612e7574696c2e4c696e6b6564486173685365749101',
    cbor: '9f776a6176612e7574696c2e4c696e6b6564486173685365749f01ffff',
  },
  'List.of': {
    json: '["a",1]',
    typed: '["a",1]',
    msgpack: '92a16101',
    cbor: '82616101',
  },
  'Arrays.asList': {
    json: '["java.util.Arrays$ArrayList",["a",1]]',
    typed: '["a",1]',
    msgpack: '92ba6a6176612e7574696c2e4172726179732441727261794c69737492a16101',
    cbor: '9f781a6a6176612e7574696c2e4172726179732441727261794c6973749f616101ffff',
  },
  LinkedHashMap: {
    json: '{"@class":"java.util.LinkedHashMap","a":1,"b":["java.lang.Long",2],"d":["java.util.Date",0],"raw":["[B","AQ=="],"l":["java.util.ArrayList",[1.5]],"u":["java.util.UUID","00000000-0000-0001-0000-000000000002"]}',
    typed: '{"a":1,"b":2,"d":0,"raw":"AQ==","l":[1.5],"u":"00000000-0000-0001-0000-000000000002"}',
    msgpack:
      '87a640636c617373b76a6176612e7574696c2e4c696e6b6564486173684d6170a16101a16292ae6a6176612e6c616e672e4c6f6e6702a16492ae6a6176612e7574696c2e4461746500a372617792a25b42c40101a16c92b36a6176612e7574696c2e41727261794c69737491cb3ff8000000000000a17592ae6a6176612e7574696c2e55554944d92430303030303030302d303030302d303030312d303030302d303030303030303030303032',
    cbor: 'bf6640636c617373776a6176612e7574696c2e4c696e6b6564486173684d617061610161629f6e6a6176612e6c616e672e4c6f6e6702ff61649f6e6a6176612e7574696c2e4461746500ff637261779f625b424101ff616c9f736a6176612e7574696c2e41727261794c6973749ffb3ff8000000000000ffff61759f6e6a6176612e7574696c2e55554944782430303030303030302d303030302d303030312d303030302d303030303030303030303032ffff',
  },
  'HashMap empty': {
    json: '{"@class":"java.util.HashMap"}',
    typed: '{}',
    msgpack: '81a640636c617373b16a6176612e7574696c2e486173684d6170',
    cbor: 'bf6640636c617373716a6176612e7574696c2e486173684d6170ff',
  },
  'Map.of': {
    json: '{"k":"v"}',
    typed: '{"k":"v"}',
    msgpack: '81a16ba176',
    cbor: 'bf616b6176ff',
  },
  'map int key': {
    json: '{"@class":"java.util.LinkedHashMap","5":1}',
    typed: '{"5":1}',
    msgpack: '82a640636c617373b76a6176612e7574696c2e4c696e6b6564486173684d6170a13501',
    cbor: 'bf6640636c617373776a6176612e7574696c2e4c696e6b6564486173684d61700501ff',
  },
  'list null': {
    json: '["java.util.ArrayList",[null]]',
    typed: '[null]',
    msgpack: '92b36a6176612e7574696c2e41727261794c69737491c0',
    cbor: '9f736a6176612e7574696c2e41727261794c6973749ff6ffff',
  },
  'int[]': {
    json: '[1,2]',
    typed: '[1,2]',
    msgpack: '920102',
    cbor: '820102',
  },
  'long[]': {
    json: '[1,2]',
    typed: '[1,2]',
    msgpack: '920102',
    cbor: '820102',
  },
  'Long[]': {
    json: '["[Ljava.lang.Long;",[["java.lang.Long",1]]]',
    typed: '[1]',
    msgpack: '92b15b4c6a6176612e6c616e672e4c6f6e673b9192ae6a6176612e6c616e672e4c6f6e6701',
    cbor: '9f715b4c6a6176612e6c616e672e4c6f6e673b9f9f6e6a6176612e6c616e672e4c6f6e6701ffffff',
  },
  'Object[]': {
    json: '["[Ljava.lang.Object;",[1,"a",["java.lang.Long",2]]]',
    typed: '[1,"a",2]',
    msgpack: '92b35b4c6a6176612e6c616e672e4f626a6563743b9301a16192ae6a6176612e6c616e672e4c6f6e6702',
    cbor: '9f735b4c6a6176612e6c616e672e4f626a6563743b9f0161619f6e6a6176612e6c616e672e4c6f6e6702ffffff',
  },
  'String[]': {
    json: '["a"]',
    typed: '["a"]',
    msgpack: '91a161',
    cbor: '816161',
  },
  'double[]': {
    json: '[1.0,2.5]',
    typed: '[1.0,2.5]',
    msgpack: '92cb3ff0000000000000cb4004000000000000',
    cbor: '82fb3ff0000000000000fb4004000000000000',
  },
  Timestamp: {
    json: '["java.sql.Timestamp",5]',
    typed: '5',
    msgpack: '92b26a6176612e73716c2e54696d657374616d7005',
    cbor: '9f726a6176612e73716c2e54696d657374616d7005ff',
  },
  'List<Float>': {
    json: '["java.util.ArrayList",[["java.lang.Float",1.5],["java.lang.Short",1],["java.lang.Byte",2],["java.lang.Character","c"],["com.x.Main$Color","RED"]]]',
    typed: '[1.5,1,2,"c","RED"]',
    msgpack:
      '92b36a6176612e7574696c2e41727261794c6973749592af6a6176612e6c616e672e466c6f6174ca3fc0000092af6a6176612e6c616e672e53686f72740192ae6a6176612e6c616e672e427974650292b36a6176612e6c616e672e436861726163746572a16392b0636f6d2e782e4d61696e24436f6c6f72a3524544',
    cbor: '9f736a6176612e7574696c2e41727261794c6973749f9f6f6a6176612e6c616e672e466c6f6174fa3fc00000ff9f6f6a6176612e6c616e672e53686f727401ff9f6e6a6176612e6c616e672e4279746502ff9f736a6176612e6c616e672e4368617261637465726163ff9f70636f6d2e782e4d61696e24436f6c6f7263524544ffffff',
  },
  ListOfBytes: {
    json: '["java.util.ArrayList",[["[B","AQI="],["[I",[1,2]]]]',
    typed: '["AQI=",[1,2]]',
    msgpack: '92b36a6176612e7574696c2e41727261794c6973749292a25b42c402010292a25b49920102',
    cbor: '9f736a6176612e7574696c2e41727261794c6973749f9f625b42420102ff9f625b499f0102ffffffff',
  },
  ArrayDeque: {
    json: '["java.util.ArrayDeque",[1]]',
    typed: '[1]',
    msgpack: '92b46a6176612e7574696c2e417272617944657175659101',
    cbor: '9f746a6176612e7574696c2e417272617944657175659f01ffff',
  },
  Inner: {
    json: '{"@class":"com.x.Main$Inner","z":1}',
    typed: '{"z":1}',
    msgpack: '82a640636c617373b0636f6d2e782e4d61696e24496e6e6572a17a01',
    cbor: 'bf6640636c61737370636f6d2e782e4d61696e24496e6e6572617a01ff',
  },
  Order: {
    json: '{"@class":"com.x.Main$Order","any":"s","anyBig":["java.lang.Long",5000000000],"anyBytes":["[B","AQI="],"anyDouble":1.0,"anyInts":["[I",[1]],"anyLong":["java.lang.Long",5],"at":["java.util.Date",0],"bd":["java.math.BigDecimal",1000],"bi":["java.math.BigInteger",5],"boxed":["java.lang.Long",8],"boxedByte":6,"boxedInt":4,"boxedInts":[1],"boxedShort":5,"bs":[true],"c":"RED","cc":"d","ch":"c","chars":"ab","d":1.5,"dates":["[Ljava.util.Date;",[["java.util.Date",1]]],"dd":1.0,"ds":[1.0,2.5],"f":2.5,"grid":[[1],[2]],"id":7,"in":{"@class":"com.x.Main$Inner","z":1},"inners":["[Lcom.x.Main$Inner;",[{"@class":"com.x.Main$Inner","z":1}]],"ints":[1,2],"ll":["java.util.ArrayList",[["java.lang.Long",1]]],"longs":["[Ljava.lang.Long;",[["java.lang.Long",1]]],"meta":{"@class":"java.util.LinkedHashMap","k":["java.lang.Long",9]},"ml":{"@class":"java.util.TreeMap","k":["java.lang.Long",9]},"n":3,"name":"x","nan":"NaN","objs":["[Ljava.lang.Object;",[1,"a",["java.lang.Long",2]]],"ok":true,"prims":[1,3000000000],"raw":"AQI=","set":["java.util.HashSet",["s"]],"ss":[1],"strs":["q"],"tags":["java.util.ArrayList",["a","b"]],"u":["java.util.UUID","00000000-0000-0001-0000-000000000002"],"uuids":[["java.util.UUID","00000000-0000-0001-0000-000000000002"]]}',
    typed:
      '{"any":"s","anyBig":5000000000,"anyBytes":"AQI=","anyDouble":1.0,"anyInts":[1],"anyLong":5,"at":0,"bd":1000,"bi":5,"boxed":8,"boxedByte":6,"boxedInt":4,"boxedInts":[1],"boxedShort":5,"bs":[true],"c":"RED","cc":"d","ch":"c","chars":"ab","d":1.5,"dates":[1],"dd":1.0,"ds":[1.0,2.5],"f":2.5,"grid":[[1],[2]],"id":7,"in":{"z":1},"inners":[{"z":1}],"ints":[1,2],"ll":[1],"longs":[1],"meta":{"k":9},"ml":{"k":9},"n":3,"name":"x","nan":"NaN","objs":[1,"a",2],"ok":true,"prims":[1,3000000000],"raw":"AQI=","set":["s"],"ss":[1],"strs":["q"],"tags":["a","b"],"u":"00000000-0000-0001-0000-000000000002","uuids":["00000000-0000-0001-0000-000000000002"]}',
    msgpack:
      'de002fa640636c617373b0636f6d2e782e4d61696e244f72646572a3616e79a173a6616e7942696792ae6a6176612e6c616e672e4c6f6e67cf000000012a05f200a8616e79427974657392a25b42c4020102a9616e79446f75626c65cb3ff0000000000000a7616e79496e747392a25b499101a7616e794c6f6e6792ae6a6176612e6c616e672e4c6f6e6705a2617492ae6a6176612e7574696c2e4461746500a2626492b46a6176612e6d6174682e426967446563696d616ccd03e8a2626992b46a6176612e6d6174682e426967496e746567657205a5626f78656492ae6a6176612e6c616e672e4c6f6e6708a9626f7865644279746506a8626f786564496e7404a9626f786564496e74739101aa626f78656453686f727405a2627391c3a163a3524544a26363a164a26368a163a56368617273a26162a164cb3ff8000000000000a5646174657392b15b4c6a6176612e7574696c2e446174653b9192ae6a6176612e7574696c2e4461746501a26464cb3ff0000000000000a2647392cb3ff0000000000000cb4004000000000000a166ca40200000a4677269649291019102a2696407a2696e82a640636c617373b0636f6d2e782e4d61696e24496e6e6572a17a01a6696e6e65727392b35b4c636f6d2e782e4d61696e24496e6e65723b9182a640636c617373b0636f6d2e782e4d61696e24496e6e6572a17a01a4696e7473920102a26c6c92b36a6176612e7574696c2e41727261794c6973749192ae6a6176612e6c616e672e4c6f6e6701a56c6f6e677392b15b4c6a6176612e6c616e672e4c6f6e673b9192ae6a6176612e6c616e672e4c6f6e6701a46d65746182a640636c617373b76a6176612e7574696c2e4c696e6b6564486173684d6170a16b92ae6a6176612e6c616e672e4c6f6e6709a26d6c82a640636c617373b16a6176612e7574696c2e547265654d6170a16b92ae6a6176612e6c616e672e4c6f6e6709a16e03a46e616d65a178a36e616ecb7ff8000000000000a46f626a7392b35b4c6a6176612e6c616e672e4f626a6563743b9301a16192ae6a6176612e6c616e672e4c6f6e6702a26f6bc3a57072696d739201ceb2d05e00a3726177c4020102a373657492b16a6176612e7574696c2e4861736853657491a173a273739101a47374727391a171a47461677392b36a6176612e7574696c2e41727261794c69737492a161a162a17592ae6a6176612e7574696c2e55554944d92430303030303030302d303030302d303030312d303030302d303030303030303030303032a575756964739192ae6a6176612e7574696c2e55554944d92430303030303030302d303030302d303030312d303030302d303030303030303030303032',
    cbor: 'bf6640636c61737370636f6d2e782e4d61696e244f7264657263616e79617366616e794269679f6e6a6176612e6c616e672e4c6f6e671b000000012a05f200ff68616e7942797465739f625b42420102ff69616e79446f75626c65fb3ff000000000000067616e79496e74739f625b499f01ffff67616e794c6f6e679f6e6a6176612e6c616e672e4c6f6e6705ff6261749f6e6a6176612e7574696c2e4461746500ff6262649f746a6176612e6d6174682e426967446563696d616cc4820301ff6262699f746a6176612e6d6174682e426967496e7465676572c24105ff65626f7865649f6e6a6176612e6c616e672e4c6f6e6708ff69626f786564427974650668626f786564496e740469626f786564496e747381016a626f78656453686f72740562627381f5616363524544626363616462636861636563686172736261626164fb3ff80000000000006564617465739f715b4c6a6176612e7574696c2e446174653b9f9f6e6a6176612e7574696c2e4461746501ffffff626464fb3ff000000000000062647382fb3ff0000000000000fb40040000000000006166fa40200000646772696482810181026269640762696ebf6640636c61737370636f6d2e782e4d61696e24496e6e6572617a01ff66696e6e6572739f735b4c636f6d2e782e4d61696e24496e6e65723b9fbf6640636c61737370636f6d2e782e4d61696e24496e6e6572617a01ffffff64696e7473820102626c6c9f736a6176612e7574696c2e41727261794c6973749f9f6e6a6176612e6c616e672e4c6f6e6701ffffff656c6f6e67739f715b4c6a6176612e6c616e672e4c6f6e673b9f9f6e6a6176612e6c616e672e4c6f6e6701ffffff646d657461bf6640636c617373776a6176612e7574696c2e4c696e6b6564486173684d6170616b9f6e6a6176612e6c616e672e4c6f6e6709ffff626d6cbf6640636c617373716a6176612e7574696c2e547265654d6170616b9f6e6a6176612e6c616e672e4c6f6e6709ffff616e03646e616d656178636e616efb7ff8000000000000646f626a739f735b4c6a6176612e6c616e672e4f626a6563743b9f0161619f6e6a6176612e6c616e672e4c6f6e6702ffffff626f6bf5657072696d7382011ab2d05e0063726177420102637365749f716a6176612e7574696c2e486173685365749f6173ffff6273738101647374727381617164746167739f736a6176612e7574696c2e41727261794c6973749f61616162ffff61759f6e6a6176612e7574696c2e55554944782430303030303030302d303030302d303030312d303030302d303030303030303030303032ff657575696473819f6e6a6176612e7574696c2e55554944782430303030303030302d303030302d303030312d303030302d303030303030303030303032ffff',
  },
}
