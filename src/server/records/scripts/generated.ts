// Generated from the .lua files in this folder by scripts/generate-lua.ts. Do not edit: run `npm run generate`.

export const hashValues = {
  name: "hash-values",
  sha1: "b019b3bd83840b46d296a5f69fc617b3e7efeab0",
  keys: ["records"],
  args: { most: "integer", bytes: "integer", names: "text*" },
  source: "-- Read what instances have written into a hash of theirs. Fields that none of them has written are removed: their names or values are too long, or\n-- there are too many. A key of another type goes too.\n--\n-- KEYS[1] records  any  field -> text\n--\n-- ARGV[1] most     integer  so many fields are read\n-- ARGV[2] bytes    integer  of a value, and of all names that are read\n-- ARGV[3..] names  text*    only of these fields\n--\n-- returns the values\nlocal records, most, bytes = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])\nlocal NAME = 256\n\nlocal kind = redis.call('TYPE', records).ok\nif kind ~= 'hash' then\n  if kind ~= 'none' then redis.call('UNLINK', records) end\n  return {}\nend\n\nlocal names = {}\nfor at = 3, #ARGV do names[#names + 1] = ARGV[at] end\nif #names == 0 then\n  -- of too many some are enough: the others have their turn when these are gone\n  if redis.call('HLEN', records) <= most then names = redis.call('HKEYS', records) else names = redis.call('HRANDFIELD', records, most) end\nend\n\nlocal values = {}\nfor _, name in ipairs(names) do\n  if #name <= NAME and redis.call('HSTRLEN', records, name) <= bytes then\n    values[#values + 1] = redis.call('HGET', records, name) or nil\n  else\n    redis.call('HDEL', records, name)\n  end\nend\nreturn values\n",
} as const

export const logPage = {
  name: "log-page",
  sha1: "d857f9904a4ae74db863f7a8553a06a177471bbe",
  keys: ["log"],
  args: { from: "text", most: "integer", bytes: "integer" },
  source: "-- Read a page of a log, the newest entries first. What is no entry of a log is removed, as is a key of another type.\n--\n-- KEYS[1] log  any  a stream of entries with the one field \"d\"\n--\n-- ARGV[1] from   text     \"+\", or \"(\" and the id before which the page begins\n-- ARGV[2] most   integer  entries of a page\n-- ARGV[3] bytes  integer  of an entry\n--\n-- returns the id after which the next page begins, or \"\" at the end of the log; and for each entry its id and its text\nlocal log, from, most, bytes = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])\nlocal TOGETHER = 4 -- nothing says how large they are before they are read\nlocal ENOUGH = 4194304 -- bytes that one call reads\n\nlocal kind = redis.call('TYPE', log).ok\nif kind ~= 'stream' then\n  if kind ~= 'none' then redis.call('UNLINK', log) end\n  return {''}\nend\n\nlocal page, read, last = {''}, 0, ''\nwhile true do\n  local entries = redis.call('XREVRANGE', log, from, '-', 'COUNT', TOGETHER)\n  for _, entry in ipairs(entries) do\n    if #page > 2 * most or read > ENOUGH then\n      page[1] = last\n      return page\n    end\n    local id, fields = entry[1], entry[2]\n    local size = 0\n    for _, text in ipairs(fields) do size = size + #text end\n    read = read + size\n    if #fields == 2 and fields[1] == 'd' and size <= bytes then\n      page[#page + 1], page[#page + 2] = id, fields[2]\n    else\n      redis.call('XDEL', log, id)\n    end\n    last, from = id, '(' .. id\n  end\n  if #entries < TOGETHER then return page end\nend\n",
} as const
