from django.contrib.auth import forms
from django.contrib.auth.models import User

class AdminPasswordChangeForm(forms.AdminPasswordChangeForm[User]): ...
