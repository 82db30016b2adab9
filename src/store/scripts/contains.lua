-- Search one page of a list for an element. Reads in small steps, as the elements can be large.
--
-- KEYS[1] destination  list  elements ready to be taken
--
-- ARGV[1] element  bytes    what to search for
-- ARGV[2] from     integer  index of the page's first element
-- ARGV[3] page     integer  elements to examine
-- ARGV[4] bytes    integer  the page ends with the element that reaches this many bytes
--
-- returns {index of the first match or -1, index of the next page or -1 when this was the last or the search is over}
local from, page, most = tonumber(ARGV.from), tonumber(ARGV.page), tonumber(ARGV.bytes)

-- include shared/next-step.lua

local examined, bytes, step = 0, 0, 8
while examined < page and bytes < most do
  step = math.min(step, page - examined)
  local elements = redis.call('LRANGE', KEYS.destination, from + examined, from + examined + step - 1)
  for _, element in ipairs(elements) do
    if element == ARGV.element then return {from + examined, -1} end
    examined = examined + 1
    bytes = bytes + #element
    if bytes >= most then return {-1, from + examined} end
  end
  if #elements < step then return {-1, -1} end
  step = nextStep(step, examined, bytes, most)
end
return {-1, from + examined}
