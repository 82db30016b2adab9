-- Take elements from one end of a list. Reads in small steps, as the elements can be large.
--
-- KEYS[1] destination  list  elements ready to be taken
--
-- ARGV[1] count  integer  most elements to take
-- ARGV[2] bytes  integer  take no more once the elements have this many bytes
-- ARGV[3] right  flag     take from the right end
--
-- returns the elements, the one nearest to the end first
local key, count, most, right = KEYS.destination, tonumber(ARGV.count), tonumber(ARGV.bytes), ARGV.right == '1'

-- include shared/next-step.lua

local taken, n, bytes, step = {}, 0, 0, 8
while n < count and bytes < most do
  step = math.min(step, count - n)
  local elements = right and redis.call('LRANGE', key, -n - step, -n - 1) or redis.call('LRANGE', key, n, n + step - 1)
  local length = #elements
  for i = 1, length do
    local element = elements[right and length + 1 - i or i]
    n = n + 1
    taken[n] = element
    bytes = bytes + #element
    if bytes >= most then break end
  end
  if length < step then break end
  step = nextStep(step, n, bytes, most)
end
if n > 0 then
  if right then redis.call('LTRIM', key, 0, -n - 1) else redis.call('LTRIM', key, n, -1) end
end
return taken
