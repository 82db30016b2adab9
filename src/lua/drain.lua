-- Take elements from one end of a list.
--
-- KEYS[1] destination  list  elements ready to be taken
--
-- ARGV[1] count  integer  most elements to take
-- ARGV[2] right  flag     take from the right end
--
-- returns the elements, the one nearest to the end first
local key, count = KEYS[1], tonumber(ARGV[1])
if ARGV[2] == '0' then
  local elements = redis.call('LRANGE', key, 0, count - 1)
  if #elements > 0 then redis.call('LTRIM', key, #elements, -1) end
  return elements
end

local elements = redis.call('LRANGE', key, -count, -1)
if #elements > 0 then redis.call('LTRIM', key, 0, -#elements - 1) end
local fromEnd = {}
for i = #elements, 1, -1 do fromEnd[#fromEnd + 1] = elements[i] end
return fromEnd
