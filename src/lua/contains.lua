-- Look through one page of a list for an element.
--
-- KEYS[1] destination  list  elements ready to be taken
--
-- ARGV[1] element  bytes    what to look for
-- ARGV[2] from     integer  index of the page's first element
-- ARGV[3] page     integer  elements to look at
--
-- returns {index of the first match or -1, index of the next page or -1 when this was the last or the search is over}
local from, page = tonumber(ARGV[2]), tonumber(ARGV[3])
local elements = redis.call('LRANGE', KEYS[1], from, from + page - 1)
for i, element in ipairs(elements) do
  if element == ARGV[1] then return {from + i - 1, -1} end
end
if #elements < page then return {-1, -1} end
return {-1, from + page}
