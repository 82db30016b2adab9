-- Read the values that instances have written into a hash; each value contains the name of its field. Removes the fields read that no instance can have
-- written: a value without its name, or a name or value that is too long. Removes also a key of another type.
--
-- KEYS[1] records  any  field -> text
--
-- ARGV[1] most     integer  the most fields to read
-- ARGV[2] bytes    integer  the most bytes of a value, and of all names that are read
-- ARGV[3..] names  text*    read only these fields
--
-- returns the values
local records, most, bytes = KEYS.records, tonumber(ARGV.most), tonumber(ARGV.bytes)
local NAME = 256

local kind = redis.call('TYPE', records).ok
if kind ~= 'hash' then
  if kind ~= 'none' then redis.call('UNLINK', records) end
  return {}
end

local names = {}
for at = 3, #ARGV do names[#names + 1] = ARGV[at] end
if #names == 0 then
  -- if there are too many, some are enough: later calls read the others when these are gone
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
