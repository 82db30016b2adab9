-- Read entries of the change stream, for one reader of a group or without a group. Values that no script has written are not returned, and
-- a few entries are read at a time, because entries can be of any size.
--
-- KEYS[1] changes  stream  the queue's changes
--
-- ARGV[1] group     text     "" for a reader without one
-- ARGV[2] consumer  text     the reader
-- ARGV[3] after     text     the id after which to read; for a group, entries given to this reader and not acknowledged. ">": entries given to no reader of the group
-- ARGV[4] count     integer  most entries
-- ARGV[5] bytes     integer  read no more once the entries have this many bytes
--
-- returns for each entry two: its id, and its value, 0 where no script has written it, or 1 where it is gone
local changes, group, after = KEYS.changes, ARGV.group, ARGV.after
local left, most = tonumber(ARGV.count), tonumber(ARGV.bytes)
local PAGE = 8

local function read(count)
  local found
  if group == '' then
    found = redis.call('XREAD', 'COUNT', count, 'STREAMS', changes, after)
  else
    found = redis.call('XREADGROUP', 'GROUP', group, ARGV.consumer, 'COUNT', count, 'STREAMS', changes, after)
  end
  return found and found[1] and found[1][2] or {}
end

local reply, bytes = {}, 0
while left > 0 and bytes < most do
  local page = math.min(left, PAGE)
  local entries = read(page)
  for _, entry in ipairs(entries) do
    local id, fields = entry[1], entry[2]
    local value = 1
    if fields then
      for _, text in ipairs(fields) do bytes = bytes + #text end
      value = #fields == 2 and fields[1] == 'changes' and fields[2] or 0
    end
    reply[#reply + 1], reply[#reply + 2] = id, value
    if after ~= '>' then after = id end
  end
  left = left - page
  if #entries < page then break end
end
return reply
