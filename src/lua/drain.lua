-- Take elements from the left end of a list.
--
-- KEYS[1] destination  list  elements ready to be taken
--
-- ARGV[1] count  integer  most elements to take
--
-- returns the elements
local elements = redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)
if #elements > 0 then redis.call('LTRIM', KEYS[1], #elements, -1) end
return elements
