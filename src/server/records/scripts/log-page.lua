-- Read a page of a log, the newest entries first. Removes invalid entries, and a key of another type.
--
-- KEYS[1] log  any  a stream of entries with the one field "d"
--
-- ARGV[1] from   text     "+", or "(" and the id before which the page begins
-- ARGV[2] most   integer  the most entries of a page
-- ARGV[3] bytes  integer  the most bytes of an entry
--
-- returns the id after which the next page begins, or "" at the end of the log; and for each entry its id and its text
local log, from, most, bytes = KEYS.log, ARGV.from, tonumber(ARGV.most), tonumber(ARGV.bytes)
local TOGETHER = 4 -- nothing says how large they are before they are read
local ENOUGH = 4194304 -- bytes that one call reads
local ENTRY = 4096 -- bytes that an entry counts at least, so that a call that meets only empty ones ends

local kind = redis.call('TYPE', log).ok
if kind ~= 'stream' then
  if kind ~= 'none' then redis.call('UNLINK', log) end
  return {''}
end

local page, read, last = {''}, 0, ''
while true do
  local entries = redis.call('XREVRANGE', log, from, '-', 'COUNT', TOGETHER)
  for _, entry in ipairs(entries) do
    if #page > 2 * most or read > ENOUGH then
      page[1] = last
      return page
    end
    local id, fields = entry[1], entry[2]
    local size = 0
    for _, text in ipairs(fields) do size = size + #text end
    read = read + math.max(size, ENTRY)
    if #fields == 2 and fields[1] == 'd' and size <= bytes then
      page[#page + 1], page[#page + 2] = id, fields[2]
    else
      redis.call('XDEL', log, id)
    end
    last, from = id, '(' .. id
  end
  if #entries < TOGETHER then return page end
end
