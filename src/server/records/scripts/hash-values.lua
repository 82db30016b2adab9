-- Read what instances have written into a hash of theirs; each value has the name of its field in it. What is read and none of them has written is
-- removed: a value without its name, or a name or value that is too long. A key of another type goes too.
--
-- KEYS[1] records  any  field -> text
--
-- ARGV[1] most     integer  so many fields are read
-- ARGV[2] bytes    integer  of a value, and of all names that are read
-- ARGV[3..] names  text*    only of these fields
--
-- returns the values
local records, most, bytes = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local NAME = 256

local kind = redis.call('TYPE', records).ok
if kind ~= 'hash' then
  if kind ~= 'none' then redis.call('UNLINK', records) end
  return {}
end

local names = {}
for at = 3, #ARGV do names[#names + 1] = ARGV[at] end
if #names == 0 then
  -- of too many some are enough: the others have their turn when these are gone
  if redis.call('HLEN', records) <= most then names = redis.call('HKEYS', records) else names = redis.call('HRANDFIELD', records, most) end
end

local values = {}
for _, name in ipairs(names) do
  local value = #name <= NAME and redis.call('HSTRLEN', records, name) <= bytes and redis.call('HGET', records, name)
  if value and name ~= '' and string.find(value, name, 1, true) then
    values[#values + 1] = value
  else
    redis.call('HDEL', records, name)
  end
end
return values
