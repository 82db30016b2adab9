-- Search one page of the pending entries for a payload, and remove the first match if asked to. Reads in small steps, as
-- the entries can be large.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] tail     bytes    how the entry ends: the payload's length as 64-bit little endian, and the payload
-- ARGV[2] from     integer  index of the page's first entry
-- ARGV[3] page     integer  entries to examine
-- ARGV[4] bytes    integer  the page ends with the entry that reaches this many bytes
-- ARGV[5] ordered  flag     walk the order list; otherwise the schedule
-- ARGV[6] remove   flag     remove the first match
--
-- returns {1 when found else 0, index of the next page or -1 when this was the last or the search is over}
local timeouts, order = KEYS.timeouts, KEYS.order
local tail, from, page, most = ARGV.tail, tonumber(ARGV.from), tonumber(ARGV.page), tonumber(ARGV.bytes)
local command, key = 'ZRANGE', timeouts
if ARGV.ordered == '1' then command, key = 'LRANGE', order end

-- include shared/next-step.lua

-- Before the length are the id and a byte with its length, or 8 bytes of the old format.
local function matches(entry)
  if string.sub(entry, -#tail) ~= tail then return false end
  local header = #entry - #tail
  return header == 8 or string.byte(entry, 1) == header - 1
end

local examined, bytes, step = 0, 0, 8
while examined < page and bytes < most do
  step = math.min(step, page - examined)
  local entries = redis.call(command, key, from + examined, from + examined + step - 1)
  for _, entry in ipairs(entries) do
    if matches(entry) then
      if ARGV.remove == '1' then
        redis.call('LREM', order, 1, entry)
        redis.call('ZREM', timeouts, entry)
      end
      return {1, -1}
    end
    examined = examined + 1
    bytes = bytes + #entry
    if bytes >= most then return {0, from + examined} end
  end
  if #entries < step then return {0, -1} end
  step = nextStep(step, examined, bytes, most)
end
return {0, from + examined}
