-- Inspect: the record after everything that is due has been done.
--
-- returns  at, more, then the view (see view.lua)
r.rest = 30
f.foresee(r.audit > 0 and {'v'} or {})
f.settle()
return f.finish({f.view(r.waiting + r.upgrading)})
